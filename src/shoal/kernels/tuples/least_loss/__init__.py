"""The kernels of LeastLoss: candidates, growth, exchange."""
