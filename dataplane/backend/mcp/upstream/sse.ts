import { McpFailure } from '../message/failure.ts'
import { INVALID_REQUEST } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { SseConnection } from './connection.ts'
import { DuplicateIdError } from './correlator.ts'
import type { Connection, Link } from './link.ts'

/** Link to a target that speaks HTTP+SSE. `initialize` opens the connection and stores it in `connections` by the target's name. */
export function sseLink(target: Target, connections: Map<string, Connection>): Link {
  const { name } = target
  return {
    async post(context, text, label) {
      if (label.method === 'initialize' && !connections.has(name)) {
        const opened = await SseConnection.open(context, target)
        if ('refused' in opened) return opened.refused
        connections.set(name, opened.connection)
      }
      try {
        return await live(connections, name).post(context, text, label)
      } catch (error) {
        throw error instanceof DuplicateIdError ? McpFailure.rpc(INVALID_REQUEST, error.message) : error
      }
    },
    async listen() {
      return { kind: 'events', events: live(connections, name).listen() }
    },
    async end() {
      connections.get(name)?.close()
      connections.delete(name)
    },
  }
}

function live(connections: ReadonlyMap<string, Connection>, name: string): Connection {
  const connection = connections.get(name)
  if (connection === undefined || connection.isClosed) throw new UpstreamError('reset', `the event stream of ${name} has ended`)
  return connection
}
