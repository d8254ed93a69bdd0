"""The auditor on Spark, for releases that one machine cannot hold: its checks on parts, merged."""
