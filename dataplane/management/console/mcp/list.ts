import type { McpSessions } from '#api/management/mcp.ts'
import { listSessions } from '../../../backend/mcp/session/list.ts'

const MAX_SESSIONS = 200

/** The sessions with MCP backends in this thread. `owner`: the destinations of its gateway. */
export function listMcpSessions(owner: object): McpSessions {
  const { sessions, total } = listSessions(owner, MAX_SESSIONS)
  return {
    timeMs: Date.now(),
    total,
    sessions: sessions.map(({ id = null, revision = null, client = null, ageMs = null, targets, ...session }) => ({
      ...session,
      id,
      revision,
      client,
      ageMs,
      targets: [...targets],
      pods: [],
    })),
  }
}
