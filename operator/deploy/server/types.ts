import type { DeploySettings, LevelParameters } from '../types.ts'

/** An MCP server to run in the namespace of its ProxyBackend (mcp.md §2.4). */
export interface DeployServer {
  readonly backend: { readonly namespace: string; readonly name: string; readonly uid: string }
  /** Name of its objects. */
  readonly name: string
  readonly image: string
  /** Program of the image, with its arguments. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface ServerInput {
  readonly server: DeployServer
  /** Those that hold for servers of the namespace: see `parametersFor`. */
  readonly parameters: LevelParameters
  readonly settings: DeploySettings
}
