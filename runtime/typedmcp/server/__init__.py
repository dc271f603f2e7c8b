"""Servers made of functions: the decorator API."""

from typedmcp.server.content import Audio as Audio
from typedmcp.server.content import File as File
from typedmcp.server.content import Image as Image
from typedmcp.server.options import CallNext as CallNext
from typedmcp.server.options import Middleware as Middleware
from typedmcp.server.results import AssistantMessage as AssistantMessage
from typedmcp.server.results import UserMessage as UserMessage
from typedmcp.server.server import Server as Server

__all__ = ["AssistantMessage", "Audio", "CallNext", "File", "Image", "Middleware", "Server", "UserMessage"]
