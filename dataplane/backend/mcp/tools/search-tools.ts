/** Names of the tools that the gateway has itself (mcp.md §4.7). A tool of a server with one of these names is called by `call_tool`. */
export const SEARCH_TOOLS = 'search_tools'
export const DESCRIBE_TOOL = 'describe_tool'
export const CALL_TOOL = 'call_tool'

const text = (description: string) => ({ type: 'string', description })
const readOnly = { readOnlyHint: true }

/** The tools that clients see in place of those of the servers. */
export const searchTools = [
  {
    name: SEARCH_TOOLS,
    description: `Searches the available tools. Returns names and short descriptions of the best matches. Call ${DESCRIBE_TOOL} for the arguments of one, then ${CALL_TOOL} to use it.`,
    inputSchema: {
      type: 'object',
      properties: {
        query: text('What the tool should do, in a few words, for example "create issue".'),
        limit: { type: 'integer', minimum: 1, maximum: 50, description: 'Maximum number of tools. Default: 10.' },
      },
      required: ['query'],
    },
    annotations: readOnly,
  },
  {
    name: DESCRIBE_TOOL,
    description: `Returns the description and the input schema of a tool that ${SEARCH_TOOLS} found.`,
    inputSchema: { type: 'object', properties: { name: text('Name of the tool.') }, required: ['name'] },
    annotations: readOnly,
  },
  {
    name: CALL_TOOL,
    description: `Calls a tool that ${SEARCH_TOOLS} found. Arguments must match its input schema.`,
    inputSchema: {
      type: 'object',
      properties: { name: text('Name of the tool.'), arguments: { type: 'object', description: 'Arguments of the tool.', additionalProperties: true } },
      required: ['name'],
    },
  },
]
