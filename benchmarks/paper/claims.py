"""What the paper claims of each experiment, and what differs here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how this repetition differs.

    Args:
        figure: The experiment in the paper.
        says: Its claim, recalled and not looked up.
    """

    figure: str
    says: str
    differs: str

    @property
    def text(self) -> str:
        """Both as Markdown."""
        said = f"The paper, {self.figure} (recalled, not looked up): {self.says}"
        return f"{said}\n\nHere: {self.differs}"


CLAIMS: Mapping[str, Claim] = {
    "operators": Claim(
        "section 7.1, single operators",
        "best in 19 of 20 cases on each of an 18-core Intel 8124M, a V100 and a 4-core "
        "Cortex-A53, 1.1 to 22.5 times as fast as the other search frameworks; batches 1 and 16, "
        "1000 trials each, beside PyTorch 1.5, Halide's scheduler, FlexTensor and AutoTVM.",
        "one CPU, today's libraries, other search frameworks only in the race; batch 16 for C2D, "
        "DEP and GMM; the default rules rather than Ansor's own.",
    ),
    "subgraphs": Claim(
        "section 7.2, ConvLayer and TBG",
        "1.1 to 14.2 times as fast as the other search frameworks, 1000 trials each.",
        "as above; TBG at batches 1 and 16, ConvLayer at batch 1.",
    ),
    "ablation": Claim(
        "section 7.1, four variants of the search on a convolution",
        "the last convolution of ResNet-50 at batch 16, the median of five runs of 1000 trials: "
        "without fine-tuning, with a limited space or by beam search the best program is clearly "
        "slower; the last two stop improving early.",
        "all variants use Ansor's own rules (preset `ansor`); the limited space tiles SRS and "
        "moves no stages; beam search is ours; the default search of ansorpy is added.",
    ),
    "networks": Claim(
        "section 7.3, end-to-end networks",
        "1.0 to 21.8 times as fast as AutoTVM; the artifact's latencies on the 8124M, PyTorch to "
        "Ansor in ms at batch 1: ResNet-50 35.54 to 5.81, MobileNet-V2 13.03 to 0.86, "
        "3D-ResNet-18 615.13 to 33.91, DCGAN 16.69 to 1.15, BERT 29.85 to 20.24.",
        "another machine, so only the order can be compared; wall-clock time limits tuning, "
        "not 1000 trials of each subgraph.",
    ),
    "scheduler": Claim(
        "section 7.3, the ablation of the task scheduler",
        "without the task scheduler (the same trials for every task), without fine-tuning and "
        "with a limited space a network ends clearly slower.",
        "MobileNet-V2 alone; curves are sums of the kernels' times over trials.",
    ),
    "quality": Claim(
        "section 7.3, trials to match AutoTVM",
        "ResNet-50 after 6,403 trials (AutoTVM 21,220), MobileNet-V2 1,892 (31,272), 3D-ResNet-18 "
        "1,927 (5,158), DCGAN 298 (3,003), BERT 390 (6,220).",
        "the goal is the faster library of the stage before, since AutoTVM is gone from TVM.",
    ),
}
