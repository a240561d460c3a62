"""The course notes by topic, in the order of a course: the idea, worked examples, misprints, live pages and classes.

The notes are five texts about "Attention Is All You Need". Their numbers and names stand here, their sentences do not.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from visformer.errors import N_, Message, translated
from visformer.i18n import Gettext
from visformer.pictures import worked_examples as worked
from visformer.pictures.claims import CLAIMS, Claim
from visformer.pictures.worked import Worked

_WELCOME, _BEIJING = "欢迎来到北京", "I have arrived at Beijing from Xiamen."
_SAME_WORD, _UNIVERSITY = "我和同学一起听和光同尘", "I went to Northeastern University."


@dataclass(frozen=True, kw_only=True)
class LivePage:
    """A page that shows a topic on a sentence of the notes.

    Args:
        page: its name.
        label: what it shows.
        choices: name in the address to value.
    """

    page: str
    label: str
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassNames:
    """What a class or function is called.

    Args:
        notes: in the notes.
        ours: in visformer.
        torch: in torch.
        shapes: of its input and output, with the notes' sizes: 2 sentences of 4 words, d_model 512, 8 heads.
    """

    notes: str
    ours: str
    torch: str
    shapes: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A table that compares two or more things in words; the first column names what is compared."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic of the course.

    Args:
        name: short name.
        title: title for readers.
        idea: the idea in two sentences.
        examples: its worked examples and experiments, at least one.
        live: pages that show it live.
        classes: the names of its classes.
        tables: comparisons in words.
        terms: what else the notes call it, for the search, as they write it.
    """

    name: str
    title: str
    idea: str
    examples: tuple[Worked, ...]
    live: tuple[LivePage, ...]
    classes: tuple[ClassNames, ...] = ()
    tables: tuple[Comparison, ...] = ()
    terms: str = ""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The corrected claims of the notes on this topic."""
        return tuple(claim for claim in CLAIMS if claim.topic == self.name)


_YES, _NO = N_("yes"), N_("no")

TOPICS = (
    Topic(
        name="why",
        title=N_("Why attention"),
        idea=N_(
            "A recurrent network reads word after word, so that each step waits for the one before, and what it knows "
            "of the first word has to survive every step to the last. Attention lets every word read every other "
            "directly and all at the same time; the price is one weight for each pair of words."
        ),
        terms=(
            "RNN CNN LSTM GRU 门控机制 循环神经网络 卷积神经网络 研究动机 背景 历史 影响 优势 优点 缺点 "
            "并行计算 长距离依赖 可解释 通用性 预训练 SOTA 复杂度 局部信息 上下文理解 整体架构 原论文 "
            "Attention Is All You Need 机器翻译 自然语言处理 NLP 计算机视觉 CV 语音识别 语音 token 图像 patch 前后文"
        ),
        examples=worked.WHY,
        live=(LivePage(page="", label=N_("The whole model, played word by word"), choices={"text": _BEIJING}),),
        tables=(
            Comparison(
                title=N_("What attention wins, and what it costs"),
                columns=(N_("property"), N_("why"), N_("seen here")),
                rows=(
                    (
                        N_("computes all words at once"),
                        N_("no step waits for another: a few products of matrices"),
                        N_("“steps that wait for one another”, above"),
                    ),
                    (
                        N_("reads far words as easily as near ones"),
                        N_("each pair of words has a score of its own"),
                        N_("“layers or steps”, above"),
                    ),
                    (
                        N_("depends on context"),
                        N_("a word's new vector is a sum over the sentence it stands in"),
                        N_("Attention"),
                    ),
                    (
                        N_("shows its weights"),
                        N_("they are numbers to look at, though not yet an explanation"),
                        N_("Effect on the prediction"),
                    ),
                    (N_("costs n² in time and memory"), N_("a weight for each pair"), N_("What it costs")),
                    (
                        N_("knows no neighbourhood or order by itself"),
                        N_("without positions a sentence is a bag of words"),
                        N_("Positions"),
                    ),
                    (
                        N_("serves for text, pictures and speech"),
                        N_("whatever can be cut into a sequence of vectors"),
                        N_("Where it came from, and where it went"),
                    ),
                    (
                        N_("overfits small data"),
                        N_("millions of numbers learn from few sentences"),
                        N_("Learning"),
                    ),
                ),
            ),
            Comparison(
                title=N_("Where it came from, and where it went"),
                columns=(N_("year"), N_("what"), N_("kind")),
                rows=(
                    ("2015", N_("Bahdanau et al.: attention beside a recurrent network"), N_("encoder and decoder")),
                    (
                        "2017",
                        N_("Vaswani et al. at Google, for translation: attention alone, neither RNN nor CNN"),
                        N_("encoder and decoder"),
                    ),
                    ("2018", "GPT", N_("decoder only")),
                    ("2018", "BERT", N_("encoder only")),
                    ("2019", N_("GPT-2: 12 layers in its smallest size"), N_("decoder only")),
                    ("2019", "XLNet", "–"),
                    ("2020", N_("ViT: patches of a picture as words"), N_("encoder only")),
                    ("2020", N_("wav2vec 2.0: speech"), N_("encoder only")),
                    (
                        "2023",
                        N_("Prince, Understanding Deep Learning: figure 12.7 is on the slides"),
                        N_("a book"),
                    ),
                ),
            ),
        ),
    ),
    Topic(
        name="words",
        title=N_("Words to vectors"),
        idea=N_(
            "Each token has a number, and the embedding is a table with one row of d_model numbers for each of them: "
            "to embed a sentence is to copy rows. The rows are learned, so that words used alike come to lie near "
            "each other; the same word has the same row wherever it stands."
        ),
        terms=(
            "词嵌入层 源文本嵌入层 目标文本嵌入层 词嵌入矩阵 输入嵌入 词向量 嵌入 查表 lookup 词表 Embedding "
            "word embedding 量纲 one-hot 语义 上下文 离散标号 连续表示 像在哪里 学出上下文意义 captions np.zeros "
            "高级索引 cache 反向传播 可训练"
        ),
        examples=worked.WORDS,
        live=(
            LivePage(
                page="embedding",
                label=N_("和 twice in one sentence: one row, two inputs"),
                choices={"text": _SAME_WORD, "embedding_view": "sums"},
            ),
            LivePage(page="embedding", label=N_("From letters to tokens"), choices={"text": _SAME_WORD}),
            LivePage(
                page="picture",
                label=N_("The same with patches of a picture in place of words"),
                choices={"picture_view": "patches"},
            ),
        ),
        classes=(
            ClassNames(
                "Embeddings(512, 1000)([[100, 2, 421, 508], [491, 998, 1, 221]])",
                "vf.model.Embedding(1000, config)",
                "nn.Embedding(1000, 512)",
                "(2, 4) → (2, 4, 512)",
            ),
            ClassNames("Variable(torch.LongTensor([[100, 2, 421, 508], …]))", "–", "torch.tensor", "(2, 4)"),
            ClassNames(
                "word_embedding_forward: W[x]", "vf.model.Embedding", "F.embedding", "(N, T), (V, D) → (N, T, D)"
            ),
        ),
        tables=(
            Comparison(
                title=N_("Words beside patches of a picture"),
                columns=(N_("question"), N_("a sentence"), N_("a picture (Dosovitskiy et al. 2021, section 3.1)")),
                rows=(
                    (
                        N_("how it becomes tokens"),
                        N_("a tokenizer cuts the text"),
                        N_("32 × 32 pixels, cut into 8 × 8 = 64 patches of 4 × 4"),
                    ),
                    (N_("what a token is at first"), N_("a number"), N_("4 · 4 · 3 = 48 numbers: red, green, blue")),
                    (
                        N_("how it becomes a vector"),
                        N_("a row is looked up"),
                        N_("times a matrix of 48 × 96: d_model is 96"),
                    ),
                    (
                        N_("how it gets its place"),
                        N_("a positional encoding is added"),
                        N_("a learned one is added, one row for each patch: 64 × 96"),
                    ),
                    (N_("what follows"), N_("encoder and decoder"), N_("the same; nothing in them knows of pictures")),
                ),
            ),
            Comparison(
                title=N_("Word embedding beside positional encoding"),
                columns=(N_("question"), N_("word embedding"), N_("positional encoding")),
                rows=(
                    (N_("goes in"), N_("a token's number"), N_("a position's number")),
                    (N_("how"), N_("a row is looked up"), N_("a formula: an outer product, then sine and cosine")),
                    (N_("is it a look-up?"), _YES, N_("no; a learned encoding is one")),
                    (N_("has it parameters?"), N_("yes, V × D"), N_("no; a learned one has max_len × D")),
                    (N_("does training change it?"), _YES, _NO),
                    (
                        N_("what it knows"),
                        N_("what a word means, learned from all its contexts; not the one at hand"),
                        N_("where it stands, nothing else"),
                    ),
                    (
                        N_("what they share"),
                        N_("a number becomes a vector of d_model numbers"),
                        N_("the same: so they can be added"),
                    ),
                ),
            ),
        ),
    ),
    Topic(
        name="positions",
        title=N_("Positions"),
        idea=N_(
            "Attention compares every word with every other, whatever their order, so the order has to be written into "
            "the words: each position adds its own pattern of sines and cosines. Fast waves tell neighbours apart, "
            "slow "
            "ones tell the beginning from the end, and no two positions get the same numbers."
        ),
        terms=(
            "位置编码器 位置编码 三角函数 正弦 余弦 sin cos PE 矩阵 max_len 5000 频率递减 高频 低频 周期 "
            "register_buffer 可学习的位置嵌入 ViT 顺序 seq_len 低资源"
        ),
        examples=worked.POSITIONS,
        live=(
            LivePage(
                page="positions",
                label=N_("The waves, from the fastest to the slowest"),
                choices={"positions_view": "waves"},
            ),
            LivePage(
                page="positions",
                label=N_("The matrix [max_len, d_model]"),
                choices={"positions_view": "matrix"},
            ),
            LivePage(
                page="embedding",
                label=N_("我和同学一起听和光同尘: embedding + position"),
                choices={"text": _SAME_WORD, "embedding_view": "sums"},
            ),
            LivePage(page="positions", label=N_("Learned positions"), choices={"positions_view": "learned"}),
        ),
        classes=(
            ClassNames(
                "PositionalEncoding(512, 0.1, 60)",
                "vf.model.Embedding",
                "–",
                "(2, 4, 512) → (2, 4, 512)",
            ),
            ClassNames(
                "position * div_term, pe.unsqueeze(0)",
                "vf.formulas.sinusoidal_encoding(60, 512)",
                "torch.outer",
                "(60, 1) * (256,) → (60, 256); (60, 512) → (1, 60, 512)",
            ),
            ClassNames(
                "x + self.pe[:, :seq_len]",
                "vf.formulas.sinusoidal_encoding(4, 512)",
                "–",
                "(2, 4, 512) + (1, 4, 512) → (2, 4, 512)",
            ),
            ClassNames(
                "LearnedPositionalEncoding",
                'TransformerConfig(position="learned")',
                "nn.Embedding",
                "(N, T, D) → (N, T, D)",
            ),
        ),
        tables=(
            Comparison(
                title=N_("Sine and cosine beside learned positions"),
                columns=(N_("question"), N_("sine and cosine"), N_("learned")),
                rows=(
                    (N_("how"), N_("by a formula, not trained"), N_("looked up in a table that is trained")),
                    (N_("parameters"), "0", "max_len × d_model"),
                    (N_("how it enters"), N_("added to the embedding"), N_("added just the same")),
                    (N_("longer sentences than in training"), N_("defined, though unseen"), N_("nothing to look up")),
                    (N_("used by"), N_("the paper, this translator"), "BERT, GPT, ViT"),
                    (
                        N_("how good"),
                        N_("the paper found both equal; good where data are few"),
                        N_("can be better with much data"),
                    ),
                ),
            ),
            Comparison(
                title=N_("One formula in four notations"),
                columns=(N_("written"), N_("position"), N_("pair of dimensions"), N_("a position is a")),
                rows=(
                    (N_("PE(pos, 2i): the paper, most of the notes, here"), "pos", "i", N_("row")),
                    (N_("p(i, 2j): the notes on theory"), "i", "j", N_("row")),
                    (N_("P(2i, j): the slides"), "j", "i", N_("column")),
                    (N_("result[i][j]: the notes on broadcasting"), "i", "j", N_("row")),
                ),
            ),
        ),
    ),
    Topic(
        name="attention",
        title=N_("Attention by hand"),
        idea=N_(
            "From each word three vectors are made: a query says what it looks for, a key what it offers, a value what "
            "it hands over. Queries times keys give scores, softmax makes each row of them weights that sum to 1, and "
            "the new vector of a word is the sum of all values by these weights."
        ),
        terms=(
            "注意力机制 自注意力机制 点积自注意力 缩放点积注意力 Scaled Dot-Product Attention 查询 键 "
            "值 Query Key Value 键向量 值向量 特征向量 相似度 注意力得分 注意力权重 加权求和 归一化 "
            "QK^T Q=K=V 偏置 共享模型参数 两两交互 跨向量交互 反向传播 其他词"
        ),
        examples=worked.ATTENTION,
        live=(
            LivePage(
                page="head",
                label=N_("欢迎来到北京, step by step through one head"),
                choices={"text": _WELCOME, "stack": "encoder"},
            ),
            LivePage(
                page="head",
                label=N_("How x₇ is computed: the seventh word of the slides' sentence"),
                choices={"text": _BEIJING, "stack": "encoder", "query": "7"},
            ),
            LivePage(
                page="attention",
                label=N_("What “went” reads"),
                choices={"text": "", "stack": "encoder", "query": "2"},
            ),
        ),
        classes=(
            ClassNames(
                "attention(query, key, value, mask, dropout)",
                "vf.attention(q, k, v, mask=…)",
                "F.scaled_dot_product_attention",
                "(2, 4, 512) · (2, 512, 4) → (2, 4, 4) · (2, 4, 512) → (2, 4, 512)",
            ),
        ),
        tables=(
            Comparison(
                title=N_("What has to fit together"),
                columns=(N_("matrix"), N_("shape"), N_("with the notes' sizes, for each of 8 heads")),
                rows=(
                    ("X", "n × d_model", "4 × 512"),
                    ("W_Q, W_K", "d_model × d_k", "512 × 64"),
                    ("W_V", "d_model × d_v", "512 × 64"),
                    ("Q, K", N_("n × d_k: of one width, which may differ from that of X"), "4 × 64"),
                    ("V", N_("n × d_v: usually d_v = d_k; on the slides, with one head, d_v = d_model"), "4 × 64"),
                    ("W_O", "(h · d_v) × d_model", "512 × 512"),
                    ("W_Q, W_K, W_V, b", N_("shared by all positions: so any n will do"), "–"),
                ),
            ),
        ),
    ),
    Topic(
        name="masks",
        title=N_("Masks"),
        idea=N_(
            "The decoder is autoregressive: each word may depend on those before it alone, but in training it is given "
            "the whole translation at once, and the causal mask, a lower triangle, hides what comes after. A padding "
            "mask hides the filler behind shorter sentences of a batch; here True always means “may attend”."
        ),
        terms="掩码张量 掩码 mask masked_fill 上三角 下三角 自回归 因果 causal 时间步 填充 padding 未来信息 负无穷",
        examples=worked.MASKS,
        live=(
            LivePage(
                page="masks",
                label=N_("欢迎来中国, one token more at each step"),
                choices={"text": "Welcome to China.", "target": "欢迎来中国", "masks_view": "steps"},
            ),
            LivePage(
                page="learning",
                label=N_("Trained with the mask and without it, side by side"),
                choices={"learning_beside": "no-mask"},
            ),
        ),
        classes=(
            ClassNames(
                "mask == 0 → masked_fill(−1e9)",
                "vf.formulas.causal_mask(n)",
                "nn.Transformer.generate_square_subsequent_mask",
                "(n, n)",
            ),
        ),
    ),
    Topic(
        name="heads",
        title=N_("Many heads"),
        idea=N_(
            "One pattern of attention can follow only one relation at a time, so d_model is cut into heads of d_k "
            "numbers that attend independently and in parallel. Their outputs are laid end to end, and W_O mixes them "
            "into one vector for each word."
        ),
        terms=(
            "多头注意力机制 多头自注意力机制 多头注意力层 Multi-Head Attention 4个线性层 线性变换 W^O "
            "linearList ModuleList in_features=512 泛化能力 计算效率"
        ),
        examples=worked.HEADS,
        live=(
            LivePage(
                page="head",
                label=N_("All heads of a layer, laid end to end, times W_O"),
                choices={"text": _WELCOME, "stack": "encoder", "head_view": "joined"},
            ),
            LivePage(page="heads", label=N_("What single heads do"), choices={}),
        ),
        classes=(
            ClassNames(
                "MultiHeadedAttention(8, 512, 0.1)",
                "vf.model.MultiHeadAttention(512, 8)",
                "nn.MultiheadAttention(512, 8)",
                "(2, 4, 512) → (2, 4, 8, 64) → (2, 8, 4, 64) → (2, 4, 8, 64) → (2, 4, 512)",
            ),
            ClassNames(".attn", "vf.Trace.from_attention", "need_weights=True", "(2, 8, 4, 4)"),
            ClassNames(
                "clones(nn.Linear(512, 512), 4)",
                "w_q, w_k, w_v, w_o of MultiHeadAttention",
                "in_proj_weight, out_proj",
                "4 × (512, 512)",
            ),
        ),
        tables=(
            Comparison(
                title=N_("What several heads are good for"),
                columns=(N_("claim"), N_("holds because"), N_("with care")),
                rows=(
                    (
                        N_("different relations"),
                        N_("each head has its own W_Q, W_K, W_V"),
                        N_("some heads turn out nearly useless"),
                    ),
                    (
                        N_("parallel"),
                        N_("all heads are one product of matrices"),
                        N_("as fast as one head of full width"),
                    ),
                    (N_("far words"), N_("any two words are one step apart"), N_("true of one head already")),
                    (
                        N_("more general"),
                        N_("several views of the sentence are combined"),
                        N_("in the paper 8 and 16 heads were equal, 1 and 32 worse"),
                    ),
                ),
            ),
        ),
    ),
    Topic(
        name="feed-forward",
        title=N_("Feed-forward"),
        idea=N_(
            "After the words have talked to each other, each one is worked on alone: two linear layers with a ReLU "
            "between them, the same for every position. The inner layer is wider, so that each of its d_ff units can "
            "respond to one feature and write something back."
        ),
        terms=(
            "前馈全连接层 前馈神经网络 前馈网络 FFN MLP ReLU 激活函数 d_ff 非线性 感知机 特征增强 提取特征 维度变换 "
            "拟合能力 逐个向量"
        ),
        examples=worked.FEED_FORWARD,
        live=(
            LivePage(
                page="block",
                label=N_("Inside the feed-forward network"),
                choices={"text": _WELCOME, "block_view": "inside"},
            ),
        ),
        classes=(
            ClassNames(
                "PositionwiseFeedForward(512, 1024)",
                "vf.model.FeedForward(512, 1024)",
                "nn.TransformerEncoderLayer: linear1, linear2",
                "(2, 4, 512) → (2, 4, 1024) → (2, 4, 512)",
            ),
        ),
    ),
    Topic(
        name="residual",
        title=N_("Residual sums and normalisation"),
        idea=N_(
            "Around each sublayer its input is added to its output: nothing known is lost, and in training the "
            "gradient "
            "does not vanish on its way down to the first layer. LayerNorm then brings each word's numbers to mean "
            "0 and "
            "variance 1, whatever the other words and sentences are, so that training is steady and converges faster."
        ),
        terms=(
            "规范化层 层归一化 层标准化 LayerNorm BatchNorm 残差连接 Residual Connection Add + Norm "
            "子层连接结构 SublayerConnection 均值 方差 标准差 eps gamma beta a2 缩放和平移 收敛 "
            "Pre-LN Post-LN d_in d_out"
        ),
        examples=worked.RESIDUAL,
        live=(
            LivePage(
                page="block",
                label=N_("x, what the sublayer adds, and their norm"),
                choices={"text": _UNIVERSITY, "block_view": "added"},
            ),
        ),
        classes=(
            ClassNames("LayerNorm(512)", "nn.LayerNorm(512)", "nn.LayerNorm(512)", "(2, 4, 512) → (2, 4, 512)"),
            ClassNames(
                "SublayerConnection(512)",
                "vf.model.EncoderLayer",
                "nn.TransformerEncoderLayer",
                "(2, 4, 512) → (2, 4, 512)",
            ),
        ),
        tables=(
            Comparison(
                title=N_("LayerNorm beside BatchNorm"),
                columns=(N_("question"), "LayerNorm", "BatchNorm"),
                rows=(
                    (N_("averages over"), N_("the numbers of one word"), N_("one feature, over the batch")),
                    (N_("depends on the batch"), _NO, _YES),
                    (N_("sentences of different length"), N_("no matter"), N_("padding changes the mean")),
                    (N_("a batch of one"), N_("as always"), N_("no sensible variance in training")),
                    (N_("at test time"), N_("the same computation"), N_("averages kept from training")),
                    (N_("used in"), "Transformer, BERT, GPT", N_("ResNet and most CNNs; VGG came before it")),
                    (N_("convolutional networks"), N_("usually worse"), N_("good, and faster to train")),
                    (
                        N_("pictures (N, C, H, W)"),
                        N_("for each N, over C, H and W"),
                        N_("for each C, over N, H and W"),
                    ),
                    (N_("sentences (N, T, C)"), N_("for each N and T, over C"), N_("for each C, over N and T")),
                    (N_("steady for"), N_("sequences and small batches"), N_("large batches")),
                    (
                        N_("cost"),
                        N_("a mean and a variance for each word, always"),
                        N_("for each feature; at test time those of training are used"),
                    ),
                ),
            ),
            Comparison(
                title=N_("The parts of a block"),
                columns=(N_("part"), N_("do tokens talk?"), N_("parallel over tokens?"), N_("parameters?")),
                rows=(
                    (N_("attention"), N_("yes, only here"), _YES, _YES),
                    (N_("feed-forward"), N_("no, token by token"), _YES, _YES),
                    ("LayerNorm", N_("no, token by token"), _YES, N_("yes, γ and β")),
                    (N_("residual sum"), _NO, _YES, _NO),
                ),
            ),
        ),
    ),
    Topic(
        name="encoder",
        title=N_("Encoder"),
        idea=N_(
            "A layer is self-attention and a feed-forward network, each with its residual sum and norm; the encoder is "
            "N of them, one on top of the other. It keeps one vector for each source word, of the same width in every "
            "layer, and the last layer's are the memory."
        ),
        terms=(
            "编码器层 编码器部分 EncoderLayer Encoder 堆叠 N=3 GPT-2 12层 Transformer Block 积木 参数量 MhSa 编码模型 "
            "文本到数字 N 个编码器层 下一层的输入"
        ),
        examples=worked.ENCODER,
        live=(
            LivePage(page="", label=N_("Into a layer of the encoder"), choices={"zoom": "encoder.1"}),
            LivePage(
                page="block", label=N_("How the vectors change from layer to layer"), choices={"stack": "encoder"}
            ),
        ),
        classes=(
            ClassNames(
                "EncoderLayer(512, mha, ff, 0.1)",
                "vf.model.EncoderLayer(config)",
                "nn.TransformerEncoderLayer",
                "(2, 4, 512) → (2, 4, 512)",
            ),
            ClassNames(
                "Encoder(layer, 3)", "vf.model.Encoder(config)", "nn.TransformerEncoder", "(2, 4, 512) → (2, 4, 512)"
            ),
        ),
    ),
    Topic(
        name="decoder",
        title=N_("Decoder"),
        idea=N_(
            "The decoder has a third sublayer between the two: cross-attention, whose queries come from the words "
            "written so far and whose keys and values are computed from the memory. Its self-attention is masked, so "
            "that each position knows only what stands before it."
        ),
        terms=(
            "解码器层 解码层 解码器部分 DecoderLayer Decoder 编码-解码注意力 交叉注意力 memory "
            "中间语义张量 src_attn Cross-Attn tgt BERT ChatGPT 序列到序列 seq2seq 数字到文本"
        ),
        examples=worked.DECODER,
        live=(
            LivePage(page="", label=N_("Into a layer of the decoder"), choices={"zoom": "decoder.1"}),
            LivePage(
                page="head",
                label=N_("Cross-attention: 我去东北大学 reads the English words"),
                choices={"stack": "cross"},
            ),
        ),
        classes=(
            ClassNames(
                "DecoderLayer(512, self_attn, src_attn, ff, 0.1)",
                "vf.model.DecoderLayer(config)",
                "nn.TransformerDecoderLayer",
                "(2, 4, 512), (2, 4, 512) → (2, 4, 512)",
            ),
            ClassNames(
                "Decoder(layer, 3)",
                "vf.model.Decoder(config)",
                "nn.TransformerDecoder",
                "(2, 4, 512), (2, 4, 512) → (2, 4, 512)",
            ),
            ClassNames("Transformer", "vf.Transformer(config)", "nn.Transformer", "(2, 4), (2, 4) → (2, 4, 1000)"),
        ),
        tables=(
            Comparison(
                title=N_("The three sublayers"),
                columns=(N_("sublayer"), N_("queries from"), N_("keys and values from"), N_("mask")),
                rows=(
                    (
                        N_("masked self-attention"),
                        N_("the target so far"),
                        N_("the target so far"),
                        N_("target_mask: causal, and the target's padding"),
                    ),
                    (
                        N_("cross-attention: src_attn(x, m, m)"),
                        N_("the target so far"),
                        N_("memory"),
                        N_("source_mask: the source's padding"),
                    ),
                    (N_("feed-forward"), "–", "–", "–"),
                ),
            ),
        ),
    ),
    Topic(
        name="output",
        title=N_("Output"),
        idea=N_(
            "A linear layer turns the last vector of a position into one score for each word of the vocabulary, and "
            "softmax turns the scores into probabilities. The paper uses the embedding's own table for it, so that a "
            "word scores high whose row points where the vector points."
        ),
        terms="输出部分 线性层 生成器 softmax 层 词表 概率",
        examples=worked.OUTPUT,
        live=(
            LivePage(page="decoding", label=N_("From the vector to the next word, step by step"), choices={"text": ""}),
        ),
        classes=(
            ClassNames(
                "Linear + softmax",
                "vf.model.Output(512, 1000)",
                "nn.Linear",
                "(2, 4, 512) → (2, 4, 1000)",
            ),
        ),
    ),
    Topic(
        name="training",
        title=N_("Training and decoding"),
        idea=N_(
            "In training the right translation is known: the decoder is given it shifted by one word and learns to "
            "make "
            "each next word more probable, at all positions in one pass. In use nothing is known, so it writes one "
            "word "
            "at a time and is given its own words again."
        ),
        terms="训练 解码 推理 逐词生成 损失 交叉熵 困惑度 随机失活 dropout 预测下一个词",
        examples=worked.TRAINING,
        live=(
            LivePage(page="learning", label=N_("Train a small Transformer and watch it"), choices={}),
            LivePage(page="decoding", label=N_("Word by word: greedy, sampled, beams"), choices={"text": ""}),
        ),
    ),
    Topic(
        name="cost",
        title=N_("What it costs"),
        idea=N_(
            "Every word reads every other, so that n words need n² scores and weights in each head of each layer: "
            "twice "
            "the text, four times the memory. For sentences that is little beside the other layers; for a book it is "
            "the wall that long-context models work around, so length is limited after all."
        ),
        terms="计算成本 复杂度 O(n^2) 内存 显存 长文本 序列长度限制",
        examples=worked.COST,
        live=(LivePage(page="attention", label=N_("All n² weights of a sentence"), choices={"text": _BEIJING}),),
    ),
)
"""The topics, in order."""


@dataclass(frozen=True)
class Found:
    """A place on the page that a search found.

    Args:
        topic: its topic.
        example: the example to open there.
        part: title of the part of the page, which is the example's or that of something the whole topic has; "": the
            beginning of the topic.
        text: what it says; "" if the title says all.
    """

    topic: Topic
    example: Worked
    part: str
    text: str


MISPRINTS, NAMES = N_("Misprints"), N_("What it is called")
"""Titles of what a topic has in words."""


def search(words: str, gettext: Gettext) -> list[Found]:
    """Return the examples whose texts have these words: first those that have them together, the titles before others.

    It looks through titles, ideas, terms, names of classes, misprints, tables, remarks and printed numbers, in the
    visitor's language and in English. What belongs to a topic counts for its first example. Case, spaces, commas,
    brackets, quotation marks and signs of multiplication make no difference, W^T is Wᵀ and x_7 is x₇; a number is
    found where one begins with it.
    """
    wanted = [*filter(None, map(_plain, words.split()))]
    together = _plain(words)
    found: list[tuple[bool, int, Found]] = []
    for topic in TOPICS if wanted else ():
        for example in topic.examples:
            texts = [*_texts(topic, example, gettext)]
            plain = [*map(_plain, (each.words for each in texts))]
            hits = [_first(word, plain) for word in (together, *wanted)]
            if None in hits[1:]:
                continue
            whole, *ranks = (len(texts) if hit is None else hit for hit in hits)
            scattered = whole == len(texts)
            best = max(ranks) if scattered else whole
            found.append((scattered, best, Found(topic, example, texts[best].part, texts[best].shown)))
    return [place for *_, place in sorted(found, key=lambda each: each[:2])]


def _first(word: str, texts: list[str]) -> int | None:
    """Return the first text that has a word or several; several begin and end as such, a number begins as one."""
    begins, ends = ("(?<![a-z0-9])", "(?![a-z0-9])") if " " in word else ("", "")
    wanted = re.compile(("(?<![0-9.])" if word[:1].isdigit() else begins) + re.escape(word) + ends)
    return next((rank for rank, text in enumerate(texts) if wanted.search(text)), None)


_SUBSCRIPTS = {ord("₀") + digit: f"_{digit}" for digit in range(10)}
_NONE = str.maketrans("−", "-", "*×·“”‘’\"'「」") | _SUBSCRIPTS
_BETWEEN = re.compile(r"[\s,，、;；()（）\[\]]+")
_WORDS = re.compile(r"(?<![a-z0-9]) | (?![a-z0-9])")


def _plain(text: str) -> str:
    """Return a text as it is compared: what stands between two Latin words or numbers is a single space."""
    small = text.casefold().replace("^t", "ᵀ").replace("==", "=").translate(_NONE)
    return _WORDS.sub("", _BETWEEN.sub(" ", small))


@dataclass(frozen=True)
class _Text:
    """A text that stands for a place.

    Args:
        part: title of the part of the page.
        shown: what of it a result of the search shows.
        words: all of it, in the visitor's language and in English.
    """

    part: str
    shown: str
    words: str


def _texts(topic: Topic, example: Worked, gettext: Gettext) -> Iterator[_Text]:
    """Yield every text that stands for an example, the titles first."""

    def both(parts: tuple[str, ...]) -> str:
        return "\n".join((_joined(parts, gettext), " · ".join(parts)))

    title = example.title
    yield _Text(title, "", both((title,)))
    yield _Text("", "", both((topic.title,)))
    yield _Text(title, "", example.terms)
    if example is topic.examples[0]:
        for names in topic.classes:
            called = (names.notes, names.ours, names.torch, names.shapes)
            yield _Text(NAMES, _joined(called, gettext), both(called))
        yield _Text("", "", both((topic.terms, topic.idea, *(live.label for live in topic.live))))
        for claim in topic.claims:
            said = claim.why if "$" in claim.printed else claim.printed
            yield _Text(MISPRINTS, translated(said, gettext), both((claim.printed, claim.right, claim.why)))
        for table in topic.tables:
            yield _Text(table.title, "", both((table.title, *table.columns)))
            for row in table.rows:
                yield _Text(table.title, _joined(row, gettext), both(row))
    for name, remark in example.remarks.items():
        yield _Text(title, translated(remark, gettext), both((Message(name), remark)))
    for name, printed in example.printed.items():
        numbers = printed[np.isfinite(printed)].ravel()
        each = (f"{value:.15g} {value:.2f} {value:.4f}" for value in numbers)
        yield _Text(title, "", both((Message(name), " ".join(f"{value:g}" for value in numbers), *each)))
    rows = (labels for labels in (*example.rows.values(), *example.tokens) if isinstance(labels, tuple))
    for labels in rows:
        yield _Text(title, "", both(labels) + "\n" + " ".join(labels))
    named = (*map(Message, example.inputs), *(name for _, name in example.code), example.formula)
    yield _Text(title, "", both(named))


def _joined(parts: tuple[str, ...], gettext: Gettext) -> str:
    return " · ".join(translated(part, gettext) for part in parts)
