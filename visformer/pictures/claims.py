"""Corrections of claims in course notes, shown on the pages and topics that they concern; formulas are between $."""

from dataclasses import dataclass

from visformer.errors import N_


@dataclass(frozen=True)
class Claim:
    """A sentence or formula of course notes that is wrong, or that is written differently here.

    Args:
        page: name of the page whose formula has it beside it; "": none.
        topic: name of its topic of the course.
        printed: the claim in the notes, abridged.
        right: the correct version.
        why: one line of explanation.
        convention: whether both are correct, and ``right`` is the convention used here.
    """

    page: str
    topic: str
    printed: str
    right: str
    why: str
    convention: bool = False


CLAIMS = (
    Claim(
        "positions",
        "positions",
        "$2 / 10000^{2/4} = 0.0002$",
        "$2 / 10000^{2/4} = 0.02$",
        N_("The exponent is 2/4 = 1/2: 10000^(1/2) is 100, and 2/100 is 0.02."),
    ),
    Claim(
        "positions",
        "positions",
        N_("odd dimensions: sine, even ones: cosine"),
        N_("even dimensions (2i): sine, odd ones (2i + 1): cosine"),
        N_("The formula next to that sentence says the opposite, and is right: dimensions count from 0."),
    ),
    Claim(
        "positions",
        "positions",
        r"$i \cdot 10000^{-j/d}$",
        r"$i \cdot 10000^{-2j/d}$",
        N_("Frequency j of the d/2 belongs to dimensions 2j and 2j + 1, so the exponent contains 2j."),
    ),
    Claim(
        "masks",
        "masks",
        N_("0 = visible, 1 = hidden; in the code beside it `masked_fill(mask == 0, -1e9)`"),
        N_("1 = may attend, 0 = hidden, as in that code"),
        N_("Sentence and code contradict each other. Here True always means “may attend”; “In a batch” shows both."),
    ),
    Claim(
        "masks",
        "masks",
        N_("an example that runs a decoder with a mask of zeros"),
        N_("every score becomes −1e9, and the pattern is uniform"),
        N_("Equal scores give equal weights, however low they are. Here a row that may see nothing gives zeros."),
    ),
    Claim(
        "head",
        "attention",
        "Q == K == V",
        "$Q = X W_Q, \\ K = X W_K, \\ V = X W_V$",
        N_("One sequence, three projections: the three are equal only if the three weights are."),
    ),
    Claim(
        "head",
        "attention",
        N_("V in the line for Q, in a vectorised formula"),
        r"$Q = b_q 1^T + W_q X$",
        N_("Without Q there is nothing to compare K with."),
    ),
    Claim(
        "head",
        "attention",
        r"$\mathrm{softmax}(Q K^T)\, V$",
        r"$\mathrm{softmax}(Q K^T / \sqrt{d_k})\, V$",
        N_("Products of d_k terms spread like √d_k; unscaled, softmax saturates and its gradient vanishes."),
    ),
    Claim(
        "head",
        "attention",
        r"$q = W_Q\, x$",
        r"$q^T = x^T\, W_Q^T$",
        N_(
            "Not a misprint but a convention: columns in the notes, rows in the paper's X W and here. The "
            "weights are each other's transpose."
        ),
        convention=True,
    ),
    Claim(
        "block",
        "residual",
        N_("LayerNorm has no parameters"),
        N_("γ and β: 2 × d_model numbers"),
        N_("The normalised values are multiplied by γ and shifted by β; both are learned."),
    ),
    Claim(
        "block",
        "residual",
        N_("the width d may change freely across the block: 256 in early layers, 1024 in the middle"),
        N_("one width d_model through the whole block"),
        N_(
            "x + Sublayer(x) adds number to number. Only inside a sublayer, as in the feed-forward, may it differ; the "
            "vocabulary's size comes after the last block."
        ),
    ),
    Claim(
        "block",
        "decoder",
        N_("ChatGPT's GPT has an encoder and a decoder"),
        N_("GPT is decoder-only"),
        N_("It is the decoder's stack without cross-attention: there is no memory to read from."),
    ),
    Claim(
        "positions",
        "positions",
        N_("position 3 might be [0.0, 0.5, 0.87, …, −0.2]"),
        "$PE_3 = [0.1411, -0.9900, …]$",
        N_("Invented for the example: no row of the encoding begins like this, as the second number is cos 3."),
    ),
    Claim(
        "positions",
        "positions",
        N_("PositionalEncoding keeps its table as self.pe = …"),
        N_("self.register_buffer('pe', …), as in the other notes"),
        N_("A plain attribute stays behind when the model moves to a GPU, and is not saved with it."),
    ),
    Claim(
        "",
        "words",
        N_("the embedding is multiplied to give it the scale of the positions"),
        N_("right for rows of variance 1/d_model, not for nn.Embedding's of variance 1"),
        N_("The worked example “Why the embedding is multiplied” has both lengths."),
    ),
    Claim(
        "head",
        "attention",
        N_("softmax gives the identity matrix, because each word is most related to itself"),
        N_("with the notes' own vectors 到 reads 欢迎: 9.65 against 6.85 for itself"),
        N_("A long vector has large products with all others. In the model W_Q and W_K decide, not the bare words."),
    ),
    Claim(
        "head",
        "attention",
        N_("eight tokens x₁ … x₈ on one slide, seven on the next, and (x₁, …, x₇)ᵀ of shape d × 7"),
        N_("one number n of tokens; (x₁, …, xₙ) is d × n without the ᵀ"),
        N_("“I have arrived at Beijing from Xiamen.” has seven words and a full stop: eight tokens."),
    ),
    Claim(
        "head",
        "heads",
        N_("axes are transposed so that words and their numbers stand nearer to each other"),
        N_("(head, word, d_k): a product of matrices works on the last two axes"),
        N_("It multiplies (n, d_k) with (d_k, n) in each head; whatever stands before is a batch."),
    ),
    Claim(
        "masks",
        "masks",
        N_("source_mask = zeros(8, 4, 4), for a batch of 2"),
        "(2, 1, 1, 4)",
        N_(
            "It is a mask for each head, and all sentences of a batch share it: so it cannot hide the padding of "
            "one of "
            "them. A mask belongs to a sentence."
        ),
    ),
    Claim(
        "block",
        "residual",
        N_("b2 = ones, x.std(), std + ε"),
        N_("b2 = zeros, divided by d, √(σ² + ε)"),
        N_(
            "b2 and d − 1 change the numbers of the table beside the class. ε stands inside the root in one formula of "
            "the notes and outside in another and in the code: less than 1e-5 apart."
        ),
    ),
    Claim(
        "block",
        "residual",
        "x + Dropout(Sublayer(LN(x)))",
        "LN(x + Sublayer(x))",
        N_(
            "Two conventions: the notes' code is pre-norm, as GPT-2; their formulas, the paper and this translator are "
            "post-norm. Pre-norm needs one more norm at the end. Here: TransformerConfig(norm='pre')."
        ),
        convention=True,
    ),
    Claim(
        "",
        "residual",
        N_("a line that skips s₃, s₄ and s₅: x₅ = f(x₄) + x₂"),
        N_("in a Transformer each sum skips one sublayer: x₅ = f(x₄) + x₄"),
        N_("The reason is the same: what is known need not pass through what comes between."),
    ),
    Claim(
        "block",
        "feed-forward",
        N_("the feed-forward network goes from many dimensions to few and back"),
        N_("from d_model (512) to d_ff (1,024 here, 2,048 in the paper) and back"),
        N_("It widens: more units than numbers, each of which may respond to something of its own."),
    ),
    Claim(
        "head",
        "heads",
        "$X' = W_o (X'_1, …, X'_H)^T$",
        r"$X' = W_o \begin{bmatrix} X'_1 \\ \vdots \\ X'_H \end{bmatrix}$",
        N_(
            "With words as columns the heads stand below one another, (H · d_v) × n; a transposition would mix them up."
        ),
    ),
    Claim(
        "",
        "words",
        N_("“apple” → [0.12, −0.38, …, 0.02], later [0.2, −0.5, 0.9, …]; position 0 → [0.1, −0.4, 0.8, …]"),
        N_("all are made up: a word has one row, whatever the sentence, and so has a learned position"),
        N_("Such vectors are learned, and mean nothing outside their model."),
    ),
    Claim(
        "block",
        "decoder",
        "self_attn = src_attn = MultiHeadedAttention(…)",
        N_("two objects, as with copy.deepcopy in the next test"),
        N_(
            "One object means shared weights: self-attention and cross-attention would learn the same W_Q, W_K, "
            "W_V, W_O."
        ),
    ),
    Claim(
        "",
        "positions",
        N_("我 · 和 · 同学 · 一起 · 听 · 和 · 光同尘: the first 和 a conjunction, the second a preposition"),
        N_("和光同尘 is one word, an idiom, and its 和 a verb"),
        N_("Positions tell the two 和 apart, not what they mean: that takes attention to the words around them."),
    ),
    Claim(
        "",
        "words",
        r"$x_i \in \mathbb{R}^{d_\mathrm{model}}$",
        r"$x_i \in \{0, …, V - 1\}, \ e_i = W[x_i] \in \mathbb{R}^{d_\mathrm{model}}$",
        N_("What goes into the embedding is a token's number; the row it names has d_model numbers."),
    ),
    Claim(
        "",
        "attention",
        r"$\mathrm{Attention}_{went} = Q_{went} \cdot K_{others} / \sqrt{d_k}$",
        N_("those are scores: weights are their softmax, over all words, itself included"),
        N_("Scores may be negative and sum to anything; went reads itself, too."),
    ),
    Claim(
        "",
        "masks",
        N_("future positions are set to minus infinity or to 0"),
        N_("scores to −∞, or weights to 0, each row then divided by its sum"),
        N_("A score of 0 hides nothing, as e⁰ = 1. The experiment “−∞, not 0” has all three."),
    ),
    Claim(
        "",
        "heads",
        r"$Q = Z W^Q$, $\ \mathrm{head}_i = \mathrm{Attention}(Q W^Q_i, …)$",
        r"$\mathrm{head}_i = \mathrm{Attention}(Z W^Q_i, …)$",
        N_("Projected once: the paper's Q in MultiHead(Q, K, V) is what goes in, the notes' Q is projected already."),
    ),
    Claim(
        "",
        "heads",
        "clones(nn.Linear(512, 512), 4)",
        N_("four layers, each drawn on its own"),
        N_(
            "deepcopy copies the numbers, too: W_Q = W_K = W_V = W_O at first, and all layers of a stack alike. Only "
            "training pulls them apart."
        ),
    ),
    Claim(
        "",
        "heads",
        "torch.tensor([[1, 2], [3, 4], [5, 6]])",
        "torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])",
        N_("Whole numbers have dtype int64, and torch refuses to multiply weights, which are float32, with them."),
    ),
    Claim(
        "",
        "residual",
        N_("first the sublayer, then the norm, then the sum: x + LN(Sublayer(x))"),
        N_("LN(x + Sublayer(x)), or x + Sublayer(LN(x)) as in the notes' code"),
        N_("A third order, neither the paper's nor the code's; “A layer by hand”, in topic 9, computes all three."),
    ),
    Claim(
        "",
        "residual",
        N_("the residual sum solves vanishing and exploding gradients"),
        N_("vanishing ones"),
        N_(
            "The sum adds to the gradient, which may grow all the more. The experiment “Why a residual sum” has both, "
            "and LayerNorm, which holds it back."
        ),
    ),
    Claim(
        "",
        "encoder",
        "x = self.sublayer1(x, lambda x: self.self_attention(x, x, x))",
        "self.self_attention(x, x, x, source_mask)",
        N_("Without a mask the encoder reads the padding behind shorter sentences of a batch, too."),
    ),
    Claim(
        "",
        "encoder",
        "encoder_result → torch.Size([2, 4, 512]) [[[1.5276, 1.4957, 0.6199, …]]]",
        N_("the shape; the numbers are others in each run"),
        N_(
            "They come from torch.randn and random weights without a seed. Only this is the same in all runs: each "
            "word's numbers have the mean 1, not 0, because b2 starts as ones."
        ),
    ),
    Claim(
        "",
        "training",
        N_("nn.Dropout makes fine-tuning easier"),
        N_("it keeps the network from fitting its training data too closely"),
        N_("It works in all training, and model.eval() turns it off. The notes' tests do not call it: they drop, too."),
    ),
    Claim(
        "",
        "cost",
        N_("a Transformer is not limited by the length of a text"),
        N_("n² weights, and no positions beyond max_len if they are learned"),
        N_("Any two words are one step apart, but all n² steps are paid for."),
    ),
)


def claims_of(page: str) -> tuple[Claim, ...]:
    """Return the claims that concern a page."""
    return tuple(claim for claim in CLAIMS if claim.page == page)
