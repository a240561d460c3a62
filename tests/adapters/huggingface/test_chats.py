"""Chats: the role of each token, by chat templates of several styles, written from their public formats."""

from functools import cache

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module
from visformer.adapters.huggingface.chat import read_chat
from visformer.adapters.huggingface.text import HubText
from visformer.errors import TextError
from visformer.pictures.style import visible
from visformer.trace.tokens import byte_letters

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
# The system's text goes into the last of the user's turns, and turns have to alternate.
MISTRAL = (
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set loop_messages = messages[1:] %}"
    "{% else %}{% set loop_messages = messages %}{% endif %}{{ bos_token }}{% for message in loop_messages %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}"
    "{% endif %}"
    "{% if message.role == 'user' %}{% if loop.index0 >= loop.length - 2 and system is defined %}"
    "[INST] {{ system + '\n\n' + message.content }}[/INST]{% else %}[INST] {{ message.content }}[/INST]{% endif %}"
    "{% else %} {{ message.content | trim }}{{ eos_token }}{% endif %}{% endfor %}"
)
# The system's text begins the user's turn, and the assistant is called model.
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set first = messages[0].content + '\n\n' %}"
    "{% set loop_messages = messages[1:] %}{% else %}{% set first = '' %}{% set loop_messages = messages %}{% endif %}"
    "{% for message in loop_messages %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ first if loop.first }}{% if message.content is string %}{{ message.content | trim }}{% else %}"
    "{% for part in message.content %}{{ part.text | trim }}{% endfor %}{% endif %}<end_of_turn>\n{% endfor %}"
)
# Writes a text of its own where there is no system's, and leaves out what an assistant thought before.
QWEN = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are helpful.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
)
SYSTEM, USER, ASSISTANT, MORE = (
    {"role": role, "content": text}
    for role, text in (
        ("system", "Be brief."), ("user", " Is user an assistant?"), ("assistant", "No: he asks. "), ("user", "Why?")
    )
)  # fmt: skip
CHAT = [SYSTEM, USER, ASSISTANT, MORE]
MARKS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
         "[INST]", "[/INST]", "<start_of_turn>", "<end_of_turn>"]  # fmt: skip


@cache
def tokenizer(template: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, with the joins that make tokens of template and message together, such as ".\\n"."""
    letters = sorted(byte_letters())
    merges = [(".", "Ċ"), ("Ċ", "Ċ"), ("Ġ", "N"), ("u", "s"), ("us", "e"), ("use", "r")]
    vocabulary = [*letters, *(first + second for first, second in merges)]
    library = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, merges))
    cut = pre_tokenizers.Split(Regex(r" ?\w+|[^\w\s]+[\n]*|\s+"), "isolated")
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    library.decoder = decoders.ByteLevel()
    tok = PreTrainedTokenizerFast(tokenizer_object=library, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    tok.add_special_tokens({"additional_special_tokens": MARKS[2:]})
    tok.chat_template = template
    return tok


def said(tok, messages, **options):
    """Return what the tokens of each role spell, one entry for each run of tokens of the same role."""
    ids, roles = read_chat(tok, messages, **options)
    assert ids == [
        *tok.apply_chat_template(messages, return_dict=True, add_generation_prompt=bool(options))["input_ids"]
    ]
    runs = []
    for i, role in zip(ids, roles, strict=True):
        if not runs or runs[-1][0] != role:
            runs.append((role, []))
        runs[-1][1].append(i)
    return [(role, tok.decode(run)) for role, run in runs]


@pytest.mark.parametrize(
    ("template", "runs"),
    [
        (CHATML, [
            (None, "<|im_start|>system\n"), ("system", "Be brief."), (None, "<|im_end|>\n<|im_start|>user\n"),
            ("user", " Is user an assistant?"), (None, "<|im_end|>\n<|im_start|>assistant\n"),
            ("assistant", "No: he asks. "), (None, "<|im_end|>\n<|im_start|>user\n"), ("user", "Why?"),
            (None, "<|im_end|>\n"),
        ]),
        (LLAMA, [
            (None, "<s><|start_header_id|>system<|end_header_id|>\n\n"), ("system", "Be brief."),
            (None, "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"), ("user", "Is user an assistant?"),
            (None, "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"), ("assistant", "No: he asks."),
            (None, "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"), ("user", "Why?"), (None, "<|eot_id|>"),
        ]),
        # ".\n" and " N" are tokens of template and message together: the message's.
        (MISTRAL, [
            (None, "<s>[INST] "), ("user", " Is user an assistant?"), (None, "[/INST]"), ("assistant", " No: he asks."),
            (None, "</s>[INST] "), ("system", "Be brief.\n"), (None, "\n"), ("user", "Why?"), (None, "[/INST]"),
        ]),
        (GEMMA, [
            (None, "<s><start_of_turn>user\n"), ("system", "Be brief.\n"), (None, "\n"),
            ("user", "Is user an assistant?"),
            (None, "<end_of_turn>\n<start_of_turn>model\n"), ("assistant", "No: he asks."),
            (None, "<end_of_turn>\n<start_of_turn>user\n"), ("user", "Why?"), (None, "<end_of_turn>\n"),
        ]),
    ],
    ids=["chatml", "llama", "mistral", "gemma"],
)  # fmt: skip
def test_each_token_has_the_role_of_the_message_that_it_is_part_of(template, runs):
    assert said(tokenizer(template), CHAT) == runs


def test_a_template_s_own_text_and_the_beginning_of_an_answer_have_no_role():
    assert said(tokenizer(QWEN), [MORE]) == [
        (None, "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\n"),
        ("user", "Why?"),
        (None, "<|im_end|>\n"),
    ]
    assert said(tokenizer(CHATML), [MORE], prompting=True)[-1] == (None, "<|im_end|>\n<|im_start|>assistant\n")


def test_where_a_template_changes_a_text_nothing_is_known():
    thought = {"role": "assistant", "content": "<think>He asks.</think>No."}
    assert {role for role, _ in said(tokenizer(QWEN), [USER, thought, MORE])} == {None}


def test_parts_of_a_content_and_calls_of_tools_belong_to_their_message():
    parts = {"role": "user", "content": [{"type": "text", "text": "Why"}, {"type": "text", "text": "so?"}]}
    assert said(tokenizer(GEMMA), [parts])[1:2] == [("user", "Whyso?")]
    tools = tokenizer(
        "{% for message in messages %}<|im_start|>{% for call in message.tool_calls %}{{ call | tojson }}{% endfor %}"
        "{{ message.content or '' }}<|im_end|>{% endfor %}"
    )
    calls = {"role": "assistant", "content": None, "tool_calls": [{"name": "look", "at": {"city": "Oslo"}}]}
    spoken = said(tools, [calls, {"role": "tool", "content": "rain"}])
    assert [(role, text) for role, text in spoken if role] == [
        ("assistant", "look"), ("assistant", "Oslo"), ("tool", "rain")
    ]  # fmt: skip


def test_messages_that_the_template_drops_have_no_tokens():
    last = tokenizer("{{ bos_token }}{{ messages[-1].content }}")
    assert said(last, CHAT) == [(None, "<s>"), ("user", "Why?")]


def test_without_offsets_nothing_is_known():
    class Slow:
        """A tokenizer in Python, which has no offsets."""

        apply_chat_template = tokenizer(CHATML).apply_chat_template

        def __call__(self, text, **options):
            raise NotImplementedError("return_offset_mapping is not available when using Python tokenizers")

    ids, roles = read_chat(Slow(), CHAT)
    assert roles == (None,) * len(ids)


def test_the_trace_of_a_chat_has_its_roles_and_keeps_them_in_its_file(tmp_path):
    tok = tokenizer(LLAMA)
    model = vf.wrap(tiny_module("llama", vocab_size=len(tok), max_position_embeddings=256), tok)
    trace = model.trace(CHAT)
    ids, roles = HubText(tok).chat(CHAT)
    assert trace.meta["ids"]["tgt"] == ids and trace.roles["tgt"] == roles
    assert trace.roles["next"] == (*roles[1:], None)
    assert not model.trace(ids).roles and not model.trace("Why?").roles
    trace.save(tmp_path / "chat.safetensors")
    assert dict(vf.Trace.load(tmp_path / "chat.safetensors").roles) == dict(trace.roles)
    (first, second) = model.trace_many([CHAT, [MORE]])
    assert first.roles["tgt"] == roles and set(second.roles["tgt"]) == {None, "user"}
    prompt, before = HubText(tok).chat(CHAT, prompting=True)
    answered = model.trace(CHAT, "No.")
    assert answered.meta["ids"]["tgt"] == prompt + tok("No.", add_special_tokens=False)["input_ids"]
    assert answered.roles["tgt"] == (*before, *["assistant"] * 3)
    assert visible(trace.tokens["tgt"][0]) == "<s>"


def test_an_answer_continues_the_beginning_that_the_template_writes():
    tok = tokenizer(LLAMA)
    model = vf.wrap(tiny_module("llama", vocab_size=len(tok), max_position_embeddings=256), tok)
    prompt = tok.apply_chat_template(CHAT, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    prompt.pop("token_type_ids", None)  # of transformers 4's tokenizers, which the model does not take
    theirs = model.module.generate(**prompt, max_new_tokens=5, do_sample=False, pad_token_id=1)
    ids = theirs[0, prompt["input_ids"].shape[1] :].tolist()
    assert [*model.generate(CHAT, max_new_tokens=5).ids] == ids
    (many,) = model.translate_many([CHAT], max_new_tokens=5)
    assert [*many.ids] == ids


def test_an_encoder_s_chat_has_roles_too():
    tok = tokenizer(CHATML)
    model = vf.wrap(tiny_module("bert", vocab_size=len(tok), max_position_embeddings=256), tok)
    assert dict(model.trace(CHAT).roles) == {"src": HubText(tok).chat(CHAT)[1]}


def test_what_a_template_refuses_is_said():
    with pytest.raises(TextError, match=r"cannot be written with the tokenizer's chat template: roles must alternate"):
        read_chat(tokenizer(MISTRAL), [USER, MORE])
