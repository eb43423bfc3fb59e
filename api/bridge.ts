// The bridge: the data plane in the container of an MCP server that speaks stdio (mcp.md §2.4). An init container of the data plane's image copies it there.

/** Where the pod has the files of the bridge. */
export const BRIDGE_DIRECTORY = '/.mcp-bridge'
/** Environment variable of the init container with the config file of the bridge. */
export const BRIDGE_CONFIG = 'MCP_BRIDGE_CONFIG'
/** Port on which the bridge serves Streamable HTTP. */
export const BRIDGE_PORT = 15030
/** Port of the Service of a server. */
export const SERVER_PORT = 80

/** Files of the bridge. Node runs by its own loader, because the image of the server may have another C library, or none. */
export const bridgeFiles = {
  loader: 'loader',
  libraries: 'lib',
  node: 'node',
  program: 'app/main.js',
  config: 'config.json',
} as const

/** Program and arguments that start Node from the files of a bridge. */
export const bridgeNode = (directory: string): readonly [string, ...string[]] => [
  `${directory}/${bridgeFiles.loader}`,
  '--library-path',
  `${directory}/${bridgeFiles.libraries}`,
  `${directory}/${bridgeFiles.node}`,
]
