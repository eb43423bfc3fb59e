import type { AIBackend, Backend, BackendFull, Policy, Route, Secret } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../../config/store.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { Gateway } from '../../../gateway/gateway.ts'
import { endPlugins } from '../../../policy/plugins/host.ts'
import { startBind } from '../../../net/server/testing.ts'
import { createRegistry, type Registry } from '../../../observe/telemetry/metrics/registry.ts'
import { createPool } from '../../../net/upstream/pools.ts'
import { createLlmFactory, type LlmFactoryOptions } from '../service.ts'
import { testGateway, testListener, testRoute } from '../../../testing/messages.ts'
import { replaceMessages } from '../../../testing/store.ts'

/** The config of the gateway under test. */
export interface LlmGatewayOptions {
  readonly ai: AIBackend
  /** `policies` of the backend. */
  readonly policies?: BackendFull
  readonly route?: Partial<Route>
  /** Policies on the Gateway, oldest first. */
  readonly onGateway?: readonly Pick<Policy, 'traffic' | 'backend' | 'frontend'>[]
  /** Policies on one provider. */
  readonly onProvider?: Readonly<Record<string, BackendFull>>
  readonly secrets?: readonly Secret[]
  /** Messages besides those of the backend `ns/llm`: other backends, Services, policies on them. */
  readonly more?: readonly ConfigMessage[]
  readonly clocks?: NonNullable<ConstructorParameters<typeof Gateway>[0]['clocks']>
  readonly random?: () => number
  readonly onEviction?: NonNullable<LlmFactoryOptions['onEviction']>
}

/** A gateway with one route to one LLM backend, on a real socket. */
export interface LlmGateway {
  readonly url: string
  readonly port: number
  readonly registry: Registry
  /** Finished exchanges, oldest first. */
  readonly finished: readonly Exchange[]
  update(change: Partial<LlmGatewayOptions>): void
  close(): Promise<void>
}

/** Starts a gateway in front of the configured providers. */
export async function startLlmGateway(options: LlmGatewayOptions): Promise<LlmGateway> {
  const registry = createRegistry()
  const store = createConfigStore()
  const gateway = new Gateway({
    registry,
    createPool,
    ...(options.onEviction && { onEviction: options.onEviction }),
    ...(options.clocks && { clocks: options.clocks }),
    factories: { ai: createLlmFactory({ ...(options.random && { random: options.random }), ...(options.onEviction && { onEviction: options.onEviction }) }) },
  })
  store.subscribe((snapshot) => gateway.update(snapshot))
  let current = options
  replaceMessages(store, messagesOf(current))
  const bind = await startBind((exchange) => gateway.handle(exchange), {}, { key: 'test' })
  return {
    url: `http://127.0.0.1:${bind.port}`,
    port: bind.port,
    registry,
    finished: bind.finished,
    update(change) {
      current = { ...current, ...change }
      replaceMessages(store, messagesOf(current))
    },
    async close() {
      await bind.close()
      gateway.close()
      endPlugins(registry)
    },
  }
}

function messagesOf({ ai, policies, route, onGateway = [], onProvider = {}, secrets = [], more = [] }: LlmGatewayOptions): ConfigMessage[] {
  const backend: Backend = { key: 'ns/llm', ai, ...(policies && { policies }) }
  const policy = (name: string, rest: Omit<Policy, 'key' | 'policy'>): ConfigMessage => ({
    kind: 'policy',
    message: { key: `any/ns/${name}:0`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, ...rest },
  })
  return [
    ...testListener,
    testRoute({ backend: 'ns/llm' }, route),
    { kind: 'backend', message: backend },
    ...onGateway.map((section, index) => policy(`gateway-${index}`, { target: testGateway, ...section })),
    ...Object.entries(onProvider).map(([section, full]) =>
      policy(`of-${section}`, { target: { kind: 'Backend', namespace: 'ns', name: 'llm', section }, backend: full }),
    ),
    ...secrets.map((message): ConfigMessage => ({ kind: 'secret', message })),
    ...more,
  ]
}
