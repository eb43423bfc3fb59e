import type { BackendAuth, NamedLLMProvider } from '#gen/config/types.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { ClientFormat, JsonObject, UpstreamFormat } from '../formats/types.ts'

export const providerKinds = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF'] as const
export type ProviderKind = (typeof providerKinds)[number]
export type ProviderSettings<K extends ProviderKind> = NonNullable<NamedLLMProvider[K]>

/** What is asked of a provider. */
export interface ProviderCall {
  readonly format: UpstreamFormat
  /** The model after aliases. */
  readonly model: string
  readonly isStreaming: boolean
}

/** One configured provider (llm.md §4): where it is, what it speaks, how it wants to be asked. Pure. */
export interface Provider {
  readonly kind: ProviderKind
  /** `gen_ai.provider.name`. */
  readonly system: string
  readonly host: string
  /** Of its own host; 443 where it says nothing. */
  readonly port?: number
  /** Replaces the model of requests; undefined: theirs. */
  readonly model: string | undefined
  /** Credentials where no policy names any and the provider's own host is called. */
  readonly defaultAuth: BackendAuth | undefined
  /** Of SigV4 signatures. */
  readonly signing?: { readonly region: string; readonly service: string }
  /** Scope of cloudB tokens. */
  readonly tokenScope?: string
  /** providerF: what every Converse body says. */
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  /** Formats that it speaks for a model. */
  supports(from: ClientFormat, model: string): readonly UpstreamFormat[]
  /** Path, perhaps with a query of its own. */
  pathFor(call: ProviderCall): string
  /** It speaks the realtime API, at a path of its own or at the client's; undefined: it does not (llm.md §5). */
  readonly realtime?: { readonly path?: string }
  /** Last changes to a body in the provider's format; the same object when there are none. */
  finishBody?(body: JsonObject, call: ProviderCall): JsonObject
  /** Headers that it requires, and what it takes in another place; after authentication. `from`: of bodies that are understood. */
  finishHeaders?(headers: HeaderList, from: ClientFormat | undefined): void
}

/** Formats of the OpenAI API, as far as `from` needs them. */
export function openaiFormats(from: ClientFormat, hasResponses: boolean): readonly UpstreamFormat[] {
  if (from === 'embeddings') return ['embeddings']
  return hasResponses ? ['completions', 'responses'] : ['completions']
}

/** OpenAI's newer models refuse `max_tokens`, and all know `max_completion_tokens` (llm.md §7.1). */
export function fitTokenLimit(body: JsonObject, { format }: ProviderCall): JsonObject {
  if (format !== 'completions' || body['max_tokens'] === undefined) return body
  const { max_tokens: limit, ...rest } = body
  return { ...rest, max_completion_tokens: body['max_completion_tokens'] ?? limit }
}
