import { UpstreamError } from '../../../net/upstream/types.ts'
import { McpFailure } from '../message/failure.ts'
import { INVALID_REQUEST } from '../message/rpc.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Program, Target } from '../target/target.ts'
import { DuplicateIdError } from '../upstream/correlator.ts'
import type { Connection, Link } from '../upstream/link.ts'
import { serverOf } from './server.ts'

/**
 * Link to a target that is a program. `initialize` starts a process and stores its connection in `connections` by the target's name.
 * `clientOf`: whom the process is counted for.
 */
export function stdioLink({ name }: Target, program: Program, connections: Map<string, Connection>, clientOf: (exchange: Exchange) => string): Link {
  const live = (): Connection => {
    const connection = connections.get(name)
    if (connection === undefined || connection.isClosed) throw new UpstreamError('reset', `the process of ${name} has ended`)
    return connection
  }
  return {
    async post(context, text, label) {
      if (label.method === 'initialize' && connections.get(name)?.isClosed !== false) {
        const connection = serverOf(name, program).start(clientOf(context.exchange))
        connections.set(name, connection)
        await connection.started
      }
      try {
        return await live().post(context, text, label)
      } catch (error) {
        throw error instanceof DuplicateIdError ? McpFailure.rpc(INVALID_REQUEST, error.message) : error
      }
    },
    async listen() {
      return { kind: 'events', events: live().listen() }
    },
    async end() {
      connections.get(name)?.close()
      connections.delete(name)
    },
  }
}
