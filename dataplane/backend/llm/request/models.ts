import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { pathOf, type RequestHead, type ResponseHead } from '../../../http/message.ts'
import { writeGoogleError } from '../common/google-status.ts'
import { printJson } from '../common/json.ts'
import type { ModelDescription } from '../pricing/table.ts'
import type { LlmTarget } from '../choice/target.ts'

/** A JSON response of the gateway's own. */
export function jsonResponse(status: number, value: unknown): ResponseHead {
  const body = new BufferBody(printJson(value))
  return { status, headers: new HeaderList(['content-type', 'application/json', 'content-length', String(body.length)]), body, upgraded: undefined }
}

/** Most names of models in an error. */
const MAX_NAMES = 20

/** A model in a list, with what the price catalog says about it. */
export interface ListedModel extends ModelDescription {
  readonly id: string
  readonly owner: string
}

/** Responds with the models of a backend with providers, or with one of them, which may also match an alias with `*`. */
export function respondWithProviderModels(
  exchange: Exchange,
  groups: readonly (readonly LlmTarget[])[],
  isAllowed: (model: string) => boolean,
  id: string | undefined,
): ResponseHead {
  const models = listProviderModels(groups, isAllowed)
  if (id === undefined) return respondWithModels(exchange, models)
  return respondWithModel(exchange, id, models.find((model) => model.id === id) ?? findAlias(groups, isAllowed, id), models)
}

/** The models that clients of a backend with providers may name: aliases without `*`, and the configured models of providers (llm.md §3, D2). */
function listProviderModels(groups: readonly (readonly LlmTarget[])[], isAllowed: (model: string) => boolean): ListedModel[] {
  const models = new Map<string, ListedModel>()
  for (const { settings, provider } of groups.flat()) {
    const add = (id: string): void => {
      if (isAllowed(id) && !models.has(id))
        models.set(id, { id, owner: provider.system, ...settings.prices.describe(provider.system, settings.resolveAlias(id)) })
    }
    for (const name of Object.keys(settings.section.modelAliases ?? {})) if (!name.includes('*')) add(name)
    if (provider.model !== undefined) add(provider.model)
  }
  return [...models.values()]
}

/** The model of an alias with `*` that matches. */
function findAlias(groups: readonly (readonly LlmTarget[])[], isAllowed: (model: string) => boolean, id: string): ListedModel | undefined {
  const matching = groups.flat().find(({ settings }) => settings.resolveAlias(id) !== id)
  if (matching === undefined || !isAllowed(id)) return undefined
  return { id, owner: matching.provider.system, ...matching.settings.prices.describe(matching.provider.system, matching.settings.resolveAlias(id)) }
}

/** Names of models for an error. */
export function nameModels(models: readonly ListedModel[]): string {
  const names = models.slice(0, MAX_NAMES).map(({ id }) => id)
  return names.length === 0 ? 'no models are listed' : `use one of ${names.join(', ')}${models.length > MAX_NAMES ? ' …' : ''}`
}

/** Whether a client of Google asks: by the path of the Gemini API, or its headers. */
export const isGoogleRequest = ({ target, headers }: Pick<RequestHead, 'target' | 'headers'>): boolean =>
  headers.has('x-goog-api-key') || headers.has('x-goog-api-client') || pathOf(target).startsWith('/v1beta')

/** Responds with a list of models, in the format of the client's SDK: that of Anthropic sends its version of the API. */
export function respondWithModels({ request }: Exchange, models: readonly ListedModel[]): ResponseHead {
  if (isGoogleRequest(request)) return jsonResponse(200, { models: models.map(describeForGoogle) })
  if (!request.headers.has('anthropic-version')) return jsonResponse(200, { object: 'list', data: models.map(describeModel) })
  return jsonResponse(200, { data: models.map(describeForMessages), has_more: false, first_id: models[0]?.id ?? null, last_id: models.at(-1)?.id ?? null })
}

/** Responds with one model, or that it does not exist. `models`: those that the client may use. */
export function respondWithModel({ request }: Exchange, id: string, model: ListedModel | undefined, models: readonly ListedModel[]): ResponseHead {
  const isGoogle = isGoogleRequest(request)
  const isMessages = !isGoogle && request.headers.has('anthropic-version')
  if (model !== undefined && isGoogle) return jsonResponse(200, describeForGoogle(model))
  if (model !== undefined) return jsonResponse(200, isMessages ? describeForMessages(model) : describeModel(model))
  const message = `the model ${JSON.stringify(id.slice(0, 256))} is not in the list of models; ${nameModels(models)}`
  if (isGoogle) return jsonResponse(404, writeGoogleError(404, message))
  if (isMessages) return jsonResponse(404, { type: 'error', error: { type: 'not_found_error', message } })
  return jsonResponse(404, { error: { message, type: 'invalid_request_error', param: 'model', code: 'model_not_found' } })
}

/** Modalities of the input by tag of the catalog. */
const modalities = { vision: 'image', audio: 'audio' } as const

/** Members beside those of OpenAI have the names that other servers of this API use; they are absent if the catalog does not have the model. */
function describeModel({ id, owner, contextWindow, maxOutput, tags }: ListedModel): object {
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: owner,
    context_length: contextWindow,
    max_output_tokens: maxOutput,
    input_modalities: tags && ['text', ...tags.flatMap((tag) => (Object.hasOwn(modalities, tag) ? modalities[tag as keyof typeof modalities] : []))],
    capabilities: tags,
  }
}

/** As Anthropic's API describes models. */
function describeForMessages({ id, contextWindow, maxOutput, tags }: ListedModel): object {
  const supports = (tag: string): object => ({ supported: tags?.includes(tag) === true })
  const capabilities = tags ? { image_input: supports('vision'), structured_outputs: supports('structuredOutput'), thinking: supports('reasoning') } : null
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: '1970-01-01T00:00:00Z',
    max_input_tokens: contextWindow ?? null,
    max_tokens: maxOutput ?? null,
    capabilities,
  }
}

/** As the Gemini API describes models. */
function describeForGoogle({ id, contextWindow, maxOutput, tags }: ListedModel): object {
  return {
    name: id.startsWith('tunedModels/') ? id : `models/${id}`,
    version: '001',
    displayName: id,
    description: '',
    inputTokenLimit: contextWindow,
    outputTokenLimit: maxOutput,
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents'],
    thinking: tags?.includes('reasoning') === true ? true : undefined,
  }
}
