import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAuthority, makeCertificate } from '../../harness/certificates.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import type { Program } from '../../harness/program/program.ts'

/** The route types that docs/guide/llm.md recommends. */
const routes = {
  '/chat/completions': 'Completions',
  '/responses': 'Responses',
  '/embeddings': 'Embeddings',
  '/messages': 'Messages',
  '/messages/count_tokens': 'TokenCount',
  '/models': 'Models',
  '/realtime': 'Realtime',
  '*': 'Detect',
}

/** Each provider with a model (the SDK warns about deprecated models by name). `E with ...` are model families with different APIs. */
export const providers = {
  A: { config: { providerA: {} }, model: 'gpt-4o', embeds: 'text-embedding-3-small' },
  B: {
    config: { providerB: { endpoint: 'x.openai.azure.com', deploymentName: 'gpt-4o', apiVersion: '2024-10-21' } },
    model: 'gpt-4o',
    embeds: 'text-embedding-3-small',
  },
  C: { config: { providerC: {} }, model: 'claude-next', embeds: undefined },
  D: { config: { providerD: {} }, model: 'gemini-2.5-flash', embeds: 'gemini-embedding-001' },
  'E with Claude': { config: { providerE: { projectId: 'p', region: 'us-central1' } }, model: 'claude-next', embeds: undefined },
  'E with Gemini': { config: { providerE: { projectId: 'p', region: 'us-central1' } }, model: 'google/gemini-2.5-flash', embeds: 'text-embedding-005' },
  F: { config: { providerF: { region: 'eu-west-1' } }, model: 'eu.anthropic.claude-next-v1:0', embeds: 'amazon.titan-embed-text-v2:0' },
} as const
export type ProviderName = keyof typeof providers
export const providerNames = Object.keys(providers) as ProviderName[]

/** A running data plane with one port per backend. */
export interface Backends {
  /** `http://127.0.0.1:<port>` in front of a backend. */
  origin(name: string): string
  readonly program: Program
  close(): Promise<void>
}

/** Starts a data plane with one port for each backend of the `-f` file; backends in `tls` are served over HTTPS with an untrusted certificate. */
export async function startBackends(
  backends: Readonly<Record<string, object>>,
  secrets: readonly object[] = [],
  tls: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Backends> {
  const names = Object.keys(backends)
  const ports = await findFreePorts(names.length)
  const { certificate, privateKey } = makeCertificate({ name: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: makeAuthority('untrusted') })
  const directory = await mkdtemp(join(tmpdir(), 'llm-'))
  const file = join(directory, 'config.yaml')
  const binds = names.map((name, index) => ({
    port: ports[index],
    addresses: ['127.0.0.1'],
    listeners: [
      {
        name: `on-${index}`,
        ...(tls.includes(name) && { tls: { cert: certificate, key: privateKey } }),
        routes: [{ name: `to-${index}`, backends: [backends[name]] }],
      },
    ],
  }))
  await writeFile(file, JSON.stringify({ binds, secrets }))
  const dataplane = await startDataplane({ config: { file }, env })
  return {
    origin: (name) => `${tls.includes(name) ? 'https' : 'http'}://127.0.0.1:${ports[names.indexOf(name)]}`,
    program: dataplane.program,
    async close() {
      await dataplane.stop(100)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** A running data plane in front of the mock of all vendors. */
export interface SdkGateway extends Backends {
  readonly mock: MockProvider
  origin(provider: ProviderName): string
  /** Origin of providerA over TLS. */
  readonly tlsOrigin: string
}

/** A data plane in front of the mock of all vendors, with one port for each provider. */
export async function startSdkGateway(): Promise<SdkGateway> {
  const mock = await startMockProvider()
  const backendOf = (name: ProviderName): object => ({
    ai: { provider: { ...providers[name].config, host: '127.0.0.1', port: mock.port } },
    policies: { ai: { routes }, auth: name === 'F' ? { cloudA: { secretRef: { secret: 'ns/aws' } } } : { key: 'key-of-the-provider' } },
  })
  const secrets = [{ key: 'ns/aws', type: 'opaque', data: { accessKey: 'AKIDEXAMPLE', secretKey: 'secret-of-the-gateway' } }]
  const backends = { ...Object.fromEntries(providerNames.map((name) => [name, backendOf(name)])), 'A over TLS': backendOf('A') }
  const started = await startBackends(backends, secrets, ['A over TLS'])
  return {
    ...started,
    mock,
    tlsOrigin: started.origin('A over TLS'),
    async close() {
      await started.close()
      await mock.close()
    },
  }
}
