"""The page of the study on flexible k-anonymity: pictures, tables, and where we differ from the paper."""

from __future__ import annotations

from pathlib import Path

from shoal.reproduce.data.measurements import Measurements
from shoal.reproduce.flexible.campaign_claims import CampaignClaims
from shoal.reproduce.flexible.diagrams import draw_blocks, draw_ontology, draw_process
from shoal.reproduce.flexible.figures import draw_attack, draw_loss, draw_sparsity
from shoal.reproduce.flexible.study import SHOWN_K, FlexibleFindings, FlexiblePlan
from shoal.reproduce.flexible.worked_claims import WorkedClaims
from shoal.reproduce.page import Section, write_page
from shoal.reproduce.study import Table, claims_table


def write_flexible_page(folder: Path, data: Measurements, plan: FlexiblePlan, findings: FlexibleFindings) -> Path:
    """Draw the pictures, write the tables and the page."""
    tables = findings.tables
    draw_process(folder / "flexible_figure_1.png", tables["flexible_steps"].records)
    draw_ontology(folder / "flexible_figure_2.png", findings.worked)
    draw_blocks(folder / "flexible_blocks.png", list(findings.worked.blocks.values()))
    draw_sparsity(folder / "flexible_p_s.png", tables["flexible_k_s"].records, tables["flexible_p_s"].records)
    draw_loss(folder / "flexible_loss.png", tables["flexible_runs"].records)
    draw_attack(folder / "flexible_attack.png", tables["flexible_attack"].records, plan.crowds)
    on_examples = WorkedClaims(findings.worked, tables["flexible_k_s"].records)
    claims = claims_table("flexible_claims", [*on_examples.all(), *CampaignClaims(tables).all()])
    return write_page(
        folder,
        title="Towards Flexible K-Anonymity (Kilany, Sokhn, Hellani, Shabani): examples, figures and attack, run again",
        sections=[_lead(data, plan), Section("Claim by claim", tables=[claims]), *_sections(tables), _readings()],
    )


def _lead(data: Measurements, plan: FlexiblePlan) -> Section:
    return Section(
        "What was run",
        [
            f"{len(data):,} records of {data.people:,} people from {data.origin}, with "
            f"{len(data.places.labels):,} labels of places and {len(data.ontology.attribute('device').labels):,} of "
            "devices. The paper's data (Comiquial) are not public, and it publishes no measured results: only "
            "statements, worked examples and drawings, which are all checked here.",
            f"k = {', '.join(map(str, plan.crowds))}; quasi-identifiers are place, network, hour and device, and the "
            f"device is sparse. {plan.targets} people are looked for; seed {plan.seed}.",
        ],
    )


def _sections(tables: dict[str, Table]) -> list[Section]:
    return [
        Section(
            "Figure 1: the process",
            ["Steps 1 to 9 (hashed and sealed identifiers, decoys, internal database) are what shoal sanitize does; "
             "they are not part of this run."],
            ["flexible_figure_1.png"], [tables["flexible_steps"]],
        ),
        Section("Figure 2: the ontology", ["The part of the included ontology that the paper's phones need."],
                ["flexible_figure_2.png"]),
        Section("The paper's blocks", [], ["flexible_blocks.png"], [tables["flexible_blocks"]]),
        Section("P(s) and K_s", [], ["flexible_p_s.png"],
                [tables["flexible_columns"], tables["flexible_p_s"], tables["flexible_k_s"]]),
        Section(
            "The campaign released",
            ["flexible: K_s from P(s). K_s = K: plain k-anonymity with the ontology. Device ignored: groups are formed "
             "without the device, which is published as it is. No ontology: models have no common criterion."],
            ["flexible_loss.png"], [tables["flexible_runs"]],
        ),
        Section("Density", [f"k by class of places instead of k = {SHOWN_K} everywhere."],
                tables=[tables["flexible_density"]]),
        Section(
            "The traceability attack",
            ["The attacker knows the place where a person measures most, the hours in which the person did there, and "
             "perhaps the device. Rows whose labels cover what is known are the candidates; then the attacker goes on "
             "to the next row elsewhere with the same device label."],
            ["flexible_attack.png"], [tables["flexible_attack"]],
        ),
    ]  # fmt: skip


def _readings() -> Section:
    return Section(
        "How we read the paper",
        [
            "K people share the labels of all normal quasi-identifiers, K_s those of all. Read literally, the paper's "
            "definition asks K of all quasi-identifiers, which is plain k-anonymity.",
            "P(s) is the share of records whose device fewer than K people have. It is measured in the first window "
            "and fixed from then on.",
            "K_s is P(s) times K, rounded up, at least 2 and at most K; it is K where P(s) is below 0.05.",
            "Common criterion: the labels of a block are chosen together, so that the least detail is lost; of equal "
            "ones the preferred property, then the name.",
            "The text of section 5.2 refers to figure 1 for the hierarchy of sparse attributes; it means figure 2.",
            "People are counted by their measurement agent id: one human with two phones counts twice.",
            "Countries are those of the brands' headquarters.",
        ],
    )
