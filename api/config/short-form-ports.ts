/** Default port of the section `llm` of the config file. */
export const LLM_PORT = 4000
/** Default port of the section `mcp` of the config file. */
export const MCP_PORT = 3000
