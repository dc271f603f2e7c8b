"""Servers made of functions: the decorator API."""

from typedmcp.app.content import Audio as Audio
from typedmcp.app.content import File as File
from typedmcp.app.content import Image as Image
from typedmcp.app.options import CallNext as CallNext
from typedmcp.app.options import Middleware as Middleware
from typedmcp.app.options import ToolOptions as ToolOptions
from typedmcp.app.prompts import AssistantMessage as AssistantMessage
from typedmcp.app.prompts import UserMessage as UserMessage
from typedmcp.app.server import Server as Server

__all__ = [
    "AssistantMessage", "Audio", "CallNext", "File", "Image", "Middleware", "Server", "ToolOptions", "UserMessage",
]  # fmt: skip
