"""Members that an object does not have, may not have, or has in newer revisions only."""

from __future__ import annotations

from mcpspec.v2025_11_25.exact import structs as structs_2025
from mcpspec.v2026_07_28.exact import models, structs


def use(*values: object) -> None:
    """Accept any value, so that expressions are used."""
    assert values


def read_from_a_union_that_is_not_narrowed(block: structs.ContentBlock, model: models.ContentBlock) -> None:
    use(block.type, model.type)
    use(block.text)  # E
    use(model.text)  # E
    if block.type == "image":
        use(block.data)
        use(block.text)  # E
    if model.type == "image":
        use(model.data)
        use(model.text)  # E


def read_what_may_be_absent(tool: structs.Tool, model: models.Tool) -> None:
    use(tool.title.upper())  # E
    use(model.title.upper())  # E
    title: str = tool.title  # E
    model_title: str = model.title  # E
    use(title, model_title)


def compare_with_a_tag_that_no_member_has(request: structs.ClientRequest, model: models.ClientRequest) -> None:
    use(request.params.name)  # E
    use(model.params.name)  # E


def set_a_tag_or_constant(call: structs.CallToolRequest, text: models.TextContent, form: structs.BooleanSchema) -> None:
    call.method = "tools/list"  # E
    call.jsonrpc = "1.0"  # E
    form.type = "string"  # E
    text.type = "image"  # E


def set_members_to_wrong_types(tool: structs.Tool, model: models.Tool, meta: structs.RequestMetaObject) -> None:
    tool.name = 1  # E
    tool.title = None  # E
    tool.colour = "red"  # E
    model.name = 1  # E
    model.title = None  # E
    model.colour = "red"  # E
    meta.protocol_version = 1  # E
    meta.colour = "red"  # E


def mix_backends_and_revisions(tool: structs.Tool, older: structs_2025.Tool) -> None:
    model: models.Tool = tool  # E
    newer: structs.Tool = older  # E
    use(model, newer)


def decode_to_one_type_and_use_as_another(raw: bytes) -> None:
    prompt: structs.Prompt = structs.decode(raw, structs.Tool)  # E
    text: structs.TextContent = structs.decode(raw, structs.ContentBlock)  # E
    model_prompt: models.Prompt = models.decode(raw, models.Tool)  # E
    model_text: models.TextContent = models.decode(raw, models.ContentBlock)  # E
    use(prompt, text, model_prompt, model_text)


def decode_what_is_not_json_text(parsed: dict[str, object]) -> None:
    structs.decode(parsed, structs.Tool)  # E
    models.decode(parsed, models.Tool)  # E
