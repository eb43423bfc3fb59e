/** Why MCP targets with `command` are left out (mcp.md §2.2). */
export const COMMAND_REJECTED = 'is for config files of the data plane; run the server as a Deployment, and name its Service'

/** Removes the servers of a target with `command`. Returns false if it has none. */
export function leaveOutCommand(target: Record<string, unknown>): boolean {
  if (target['command'] === undefined) return false
  for (const field of ['command', 'env']) Reflect.deleteProperty(target, field)
  target['selector'] = { targets: [] }
  return true
}
