"""What a ballot found of its members by looking at unlabelled samples:
a few numbers for each member and class.
"""

from dataclasses import dataclass

from torch import Tensor

from ostraka.core.wire import wire


@wire("assessment/1")
@dataclass(frozen=True)
class Assessment:
    """Found once from votes on unlabelled samples and then fixed,
    so that it can be stored and an answer repeated.

    The first four fields change how votes are counted; the others say why (`voting.trust`).
    """

    size: int
    """Samples that were looked at."""
    weight: Tensor
    """[M, K]: by how much each member's say in each class is multiplied."""
    scale: Tensor
    """[M, K]: by how much its log odds of the class are multiplied."""
    shift: Tensor
    """[M, K]: what is then added to them."""
    agreement: Tensor
    """[M, K]: correlation of the member's claims to the class with what the others say."""
    claimed: Tensor
    """[M, K]: the mean claim to the class, in multiples of the
    class's share of all told samples.
    """
    copies: Tensor
    """[M, M]: how far two members are one, 0 to 1; 1 on the diagonal."""
