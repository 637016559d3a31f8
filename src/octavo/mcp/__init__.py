"""Gives AI agents access to documents through tools and resources of the Model Context Protocol (MCP).

The tools call the API through `octavo.client`, so an agent can do what its API key or session allows and nothing else.
`octavo mcp` and the route `/mcp` use the same tools.
"""
