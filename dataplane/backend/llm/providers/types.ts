import type { BackendAuth, NamedLLMProvider } from '#gen/config/types.ts'
import type { ServerRules } from '#api/llm-presets.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ClientFormat, JsonObject, Target, UpstreamFormat } from '../common/types.ts'

/** The fields of a provider in the config that select its kind: `providerA` and so on. */
export type ProviderKind = Extract<keyof NamedLLMProvider, `provider${string}`>
/** The value of a provider's field in the config. */
export type ProviderSettings<K extends ProviderKind> = NonNullable<NamedLLMProvider[K]>

/** One upstream request, as far as a provider needs to know it. */
export interface ProviderCall {
  readonly format: UpstreamFormat
  /** The model, with aliases resolved. */
  readonly model: string
  readonly isStreaming: boolean
}

/** One configured provider (llm.md §4): its host, its formats and the requirements of its API. Pure. */
export interface Provider {
  /** Value of `gen_ai.provider.name` in logs, spans and metrics. */
  readonly system: string
  readonly host: string
  /** Port of `host`; default 443. */
  readonly port?: number
  /** Whether requests go over TLS if no policy configures it. Default: to `host`, not to the user's own. */
  readonly isTls?: boolean
  /** Replaces the model of requests; undefined if the client's model is used. */
  readonly model: string | undefined
  /** Credentials if no policy configures any and the request goes to `host`. */
  readonly defaultAuth: BackendAuth | undefined
  /** Region and service of SigV4 signatures. */
  readonly signing?: { readonly region: string; readonly service: string }
  /** Scope of cloudB access tokens. */
  readonly tokenScope?: string
  /** The guardrail that every Converse body names. */
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  /** Upstream formats that can serve a request in `from` with this model; empty if there are none. */
  supports(from: ClientFormat, model: string): readonly UpstreamFormat[]
  /** Whose rules requests in a format must meet (llm.md §7.15). */
  targetOf(format: UpstreamFormat, model: string): Target
  /** How the server differs from others with the Chat Completions API. */
  readonly server?: ServerRules | undefined
  /** Path of a call, optionally with a query; undefined: that of the client. */
  pathFor(call: ProviderCall): string | undefined
  /** Set if the provider implements the realtime API; `path` replaces the client's path (llm.md §5). */
  readonly realtime?: { readonly path?: string }
  /** Final changes to a body in the provider's format; returns the same object if there are none. */
  finishBody?(body: JsonObject, call: ProviderCall): JsonObject
  /** Sets required headers, and moves or removes others; runs after authentication. `from` is undefined if the body is not interpreted; `path` is that of the request. */
  finishHeaders?(headers: HeaderList, from: ClientFormat | undefined, path: string): void
}
