import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAuthority, makeCertificate } from '../harness/certificates.ts'
import { startDataplane } from '../harness/dataplane.ts'
import { startMockProvider, type MockProvider } from '../harness/llm/provider.ts'
import { findFreePorts } from '../harness/ports.ts'
import type { Program } from '../harness/program.ts'

/** What the guide tells users to set (docs/guide/llm.md). */
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

/** Each provider with a model of it (the SDK warns of models by name that it knows to end); `E with ...` are families of models that have APIs of their own. */
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

export interface SdkWorld {
  readonly mock: MockProvider
  /** `http://127.0.0.1:<port>` of the gateway in front of a provider. */
  origin(provider: ProviderName): string
  /** providerA over TLS, with a certificate that nobody knows. */
  readonly tlsOrigin: string
  /** What is logged of requests goes to standard output. */
  readonly program: Program
  close(): Promise<void>
}

/** A data plane of its own process in front of the mock of all vendors, with one port for each provider. */
export async function startSdkWorld(): Promise<SdkWorld> {
  const mock = await startMockProvider()
  const [tlsPort = 0, ...ports] = await findFreePorts(providerNames.length + 1)
  const { certificate, privateKey } = makeCertificate({ name: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: makeAuthority('nobody') })
  const backendOf = (name: ProviderName) => ({
    ai: { provider: { ...providers[name].config, host: '127.0.0.1', port: mock.port } },
    policies: { ai: { routes }, auth: name === 'F' ? { cloudA: { secretRef: { secret: 'ns/aws' } } } : { key: 'key-of-the-provider' } },
  })
  const bind = (port: number, name: ProviderName, tls?: object) => ({
    port,
    addresses: ['127.0.0.1'],
    listeners: [{ name: `on-${port}`, ...(tls && { tls }), routes: [{ name: `to-${port}`, backends: [backendOf(name)] }] }],
  })
  const directory = await mkdtemp(join(tmpdir(), 'llm-'))
  const file = join(directory, 'config.yaml')
  const config = {
    binds: [bind(tlsPort, 'A', { cert: certificate, key: privateKey }), ...providerNames.map((name, index) => bind(ports[index] ?? 0, name))],
    secrets: [{ key: 'ns/aws', type: 'opaque', data: { accessKey: 'AKIDEXAMPLE', secretKey: 'secret-of-the-gateway' } }],
  }
  await writeFile(file, JSON.stringify(config))
  const dataplane = await startDataplane({ config: { file } })
  return {
    mock,
    origin: (provider) => `http://127.0.0.1:${ports[providerNames.indexOf(provider)]}`,
    tlsOrigin: `https://127.0.0.1:${tlsPort}`,
    program: dataplane.program,
    async close() {
      await dataplane.stop(100)
      await mock.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
