import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import type { Program } from '../../harness/program/program.ts'

interface E2eTarget {
  readonly name: string
  readonly port: number
  readonly path?: string
  readonly protocol?: 'StreamableHTTP' | 'SSE'
  readonly policies?: object
  /** The target is a gRPC server. */
  readonly grpc?: object
}

/** An MCP backend of a `-f` file. */
export interface E2eBackend {
  readonly targets: readonly E2eTarget[]
  readonly sessionRouting?: 'Stateful' | 'Stateless'
  readonly prefixMode?: 'Conditional' | 'Always' | 'Never'
}

/** A running data plane. */
export interface E2eGateway {
  /** URL of the MCP endpoint of a backend. */
  url(backend: string): string
  /** The same for clients of the older SSE transport. */
  sseUrl(backend: string): string
  readonly program: Program
  stop(): Promise<void>
}

/** Starts a data plane with one port for each backend. */
export async function startGateway(backends: Readonly<Record<string, E2eBackend>>): Promise<E2eGateway> {
  const names = Object.keys(backends)
  const ports = await findFreePorts(names.length)
  const directory = await mkdtemp(join(tmpdir(), 'mcp-'))
  const binds = Object.entries(backends).map(([name, { targets, ...mcp }], index) => ({
    port: ports[index],
    listeners: [
      {
        name,
        routes: [
          {
            name,
            backends: [
              { mcp: { ...mcp, targets: targets.map(({ name: target, grpc, ...rest }) => ({ name: target, grpc, static: { host: '127.0.0.1', ...rest } })) } },
            ],
          },
        ],
      },
    ],
  }))
  const file = join(directory, 'config.yaml')
  await writeFile(file, stringify({ binds }))
  const dataplane = await startDataplane({ config: { file }, env: { SESSION_KEY: '5e'.repeat(32) } })
  const origin = (backend: string): string => `http://localhost:${ports[names.indexOf(backend)]}`
  return {
    url: (backend) => `${origin(backend)}/mcp`,
    sseUrl: (backend) => `${origin(backend)}/sse`,
    program: dataplane.program,
    async stop() {
      await dataplane.stop(100)
      await rm(directory, { recursive: true, force: true })
    },
  }
}
