"""Chat templates against Python's jinja2, in the environment that transformers gives them."""
import json, pathlib
import pytest

HERE = pathlib.Path(__file__).parent
FAMILIES = sorted(p.stem for p in (HERE / "templates").glob("*.jinja"))
USER = {"role": "user", "content": "What is 2 < 3 && \"4\"?"}
CALL = {"type": "function", "id": "c1", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "n": 1.5, "ok": True, "none": None}}}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "It's <b>fine</b> & \"quoted\"", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": []}}}
CONVERSATIONS = {
    "one": [USER],
    "system": [{"role": "system", "content": "Be brief.\nAlways."}, USER],
    "turns": [USER, {"role": "assistant", "content": "True."}, {"role": "user", "content": "Why?"}],
    "system_turns": [{"role": "system", "content": "S"}, USER, {"role": "assistant", "content": " padded \n"}, {"role": "user", "content": "\n\nNext"}],
    "empty": [{"role": "user", "content": ""}],
    "markup": [{"role": "user", "content": "<|im_end|> {{ 7 * 7 }} {% if x %} <b>'it\\'s'</b> \\n \t é 漢字 😀"}],
    "thinking": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes"}, {"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "<think>x</think>Very"}],
    "tools": [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "content": "{\"t\": 21}"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what?"}]}],
    "wrong_order": [USER, USER],
    "long": [{"role": r, "content": f"turn {i} " * 5} for i, r in enumerate(["user", "assistant"] * 20 + ["user"])],
}


def jinja(source, variables):
    """Text, or None if the template fails."""
    import jinja2, jinja2.ext, jinja2.sandbox
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    try:
        return env.from_string(source).render(**variables)
    except (jinja2.exceptions.TemplateError, TypeError):
        return None


def compare(skipstone, tmp_path, source, variables):
    (tmp_path / "t.jinja").write_text(source)
    (tmp_path / "v.json").write_text(json.dumps(variables))
    p = skipstone("template", "--template", tmp_path / "t.jinja", "--messages", tmp_path / "v.json", "--bos", variables["bos_token"], "--eos", variables["eos_token"],
                  *(["--add-generation-prompt"] if variables["add_generation_prompt"] else []), check=False)
    want = jinja(source, variables)
    if want is None:
        assert p.returncode == 1 and p.stdout == b"" and p.stderr.startswith(b"skipstone: "), p.stdout
    else:
        assert p.returncode == 0, p.stderr
        assert p.stdout.decode() == want


def variables(name, generation, **more):
    return {"messages": CONVERSATIONS[name], "add_generation_prompt": generation, "bos_token": "<s>", "eos_token": "</s>", **more}


@pytest.mark.parametrize("generation", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_family_equals_jinja2(skipstone, tmp_path, family, name, generation):
    source = (HERE / "templates" / f"{family}.jinja").read_text()
    compare(skipstone, tmp_path, source, variables(name, generation))
    if name in ("one", "tools"):
        compare(skipstone, tmp_path, source, variables(name, generation, tools=[TOOL, TOOL]))


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_smollm2s_own_template_equals_jinja2(skipstone, smollm2, tmp_path, name):
    gguf = pytest.importorskip("gguf")
    field = gguf.GGUFReader(smollm2).fields["tokenizer.chat_template"]
    compare(skipstone, tmp_path, bytes(field.parts[field.data[0]]).decode(), variables(name, True))


@pytest.mark.parametrize("expression", (HERE / "templates/expressions.txt").read_text().splitlines())
def test_expression_equals_jinja2(skipstone, tmp_path, expression):
    compare(skipstone, tmp_path, "{{ [" + expression + "] }}", variables("one", False))


@pytest.mark.parametrize("source, words", [
    ("a\nb\n{% include 'x' %}", ["line 3", "include"]),
    ("{{ 'a' | frobnicate }}", ["line 1", "frobnicate"]),
    ("{{ 'a'.frobnicate() }}", ["line 1", "frobnicate"]),
    ("{% if 1 is frobnicate %}{% endif %}", ["line 1", "frobnicate"]),
    ("\n{% for x in y %}", ["line 2", "for"]),
    ("{{ 1 +", ["line 1"]),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", ["line 1"]),
    ("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", ["line 1"]),
    ("{{ 'x' * 1000000000 }}", ["line 1"]),
    ("{{ raise_exception('no: ' ~ messages[0].role) }}", ["no: user"]),
    ("(" * 3, []),
    ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", ["line 1"]),
])
def test_bad_templates_fail_with_a_line_and_a_reason(skipstone, tmp_path, source, words):
    (tmp_path / "t.jinja").write_text(source)
    (tmp_path / "v.json").write_text(json.dumps(CONVERSATIONS["one"]))
    p = skipstone("template", "--template", tmp_path / "t.jinja", "--messages", tmp_path / "v.json", check=False, timeout=60)
    if not words:
        assert p.returncode == 0 and p.stdout.decode() == source
        return
    assert p.returncode == 1 and p.stdout == b"" and p.stderr.count(b"\n") == 1
    assert all(w in p.stderr.decode() for w in words), p.stderr
