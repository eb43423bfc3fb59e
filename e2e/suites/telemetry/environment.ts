import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeAuthority, makeCertificate } from '../../harness/certificates.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { startMockProvider } from '../../harness/llm/provider.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { startOperator } from '../../harness/program/operator.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { buildCollector, startCollector, type Collector } from './collector.ts'

/** An operator, one data plane for each of two Gateways, their upstream and a collector. */
export interface Environment {
  readonly directory: string
  readonly ports: Readonly<Record<'GRPC_PORT' | 'TLS_PORT' | 'HTTP_PORT' | 'PROMETHEUS' | 'PROMETHEUS_PROTOBUF', number>>
  readonly dataplanes: Readonly<Record<'grpc' | 'http', Dataplane>>
  readonly app: EchoServer
  /** PEM of the authority that signed the HTTPS listener's certificate. */
  readonly authority: string
  readonly collector: () => Collector
  stopCollector(): Promise<void>
  restartCollector(): Promise<void>
  stop(): Promise<void>
}

/** Starts all programs; builds the collector if necessary. */
export async function startEnvironment(): Promise<Environment> {
  const binary = await buildCollector()
  const directory = await mkdtemp(join(tmpdir(), 'telemetry-'))
  const names = ['GRPC_PORT', 'TLS_PORT', 'HTTP_PORT', 'OTLP_GRPC', 'OTLP_HTTP', 'DEAD', 'PROMETHEUS', 'PROMETHEUS_PROTOBUF'] as const
  const free = await findFreePorts(names.length)
  const ports = Object.fromEntries(names.map((name, index) => [name, free[index] ?? 0])) as Record<(typeof names)[number], number>
  const authority = makeAuthority('telemetry authority')
  const { certificate, privateKey } = makeCertificate({ name: 'server', hosts: ['localhost', '127.0.0.1'], issuer: authority })
  const otlp = { grpc: ports.OTLP_GRPC, http: ports.OTLP_HTTP }
  let collector = await startCollector(binary, directory, otlp)
  const app = await startEcho({ name: 'app' })
  const mirror = await startEcho({ name: 'mirror' })
  const llm = await startMockProvider({ defaults: { delay: 5, interval: 2 } })
  const tools = await startMcpUpstream({ name: 'documents', port: 0 })

  const encode = (text: string): string => Buffer.from(text).toString('base64')
  const upstreams = { APP: String(app.port), MIRROR: String(mirror.port), LLM: String(llm.port), MCP: String(tools.port) }
  const values: Record<string, string> = { ...upstreams, CERTIFICATE: encode(certificate), KEY: encode(privateKey) }
  for (const [name, port] of Object.entries(ports)) values[name] = String(port)
  const source = await readFile(fileURLToPath(new URL('manifests.yaml', import.meta.url)), 'utf8')
  const manifests = join(directory, 'manifests')
  await mkdir(manifests)
  await writeFile(
    join(manifests, 'all.yaml'),
    // Remove the comment at the top, which contains a placeholder.
    source.replace(/^#.*\n/, '').replaceAll(/__([A-Z_]+?)__/g, (_, name: string) => values[name] ?? `unknown ${name}`),
  )
  const operator = await startOperator({ directory: manifests })
  const startFor = (gateway: string): Promise<Dataplane> => startDataplane({ config: { address: operator.address, namespace: 'default', gateway } })
  const dataplanes = { grpc: await startFor('grpc'), http: await startFor('http') }
  return {
    directory,
    ports,
    dataplanes,
    app,
    authority: authority.certificate,
    collector: () => collector,
    stopCollector: () => collector.stop(),
    async restartCollector() {
      collector = await startCollector(binary, directory, otlp)
    },
    async stop() {
      await Promise.all([dataplanes.grpc.stop(), dataplanes.http.stop()])
      await operator.stop()
      await collector.stop()
      await app.close()
      await mirror.close()
      await llm.close()
      await tools.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
