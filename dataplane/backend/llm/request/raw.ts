import type { RouteType } from '#gen/config/types.ts'
import type { PrepareContext, Prepared } from './chat.ts'
import { demandOf } from '../accounting/demand.ts'
import { promptTokensOf } from '../accounting/prompt.ts'
import { tokensIn } from '../accounting/estimate.ts'
import { detectRequest, modelOfPath } from './detect.ts'
import { renderBody } from '../common/json.ts'
import { FormatError, type JsonObject } from '../common/types.ts'
import type { Body } from '../../../http/body.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { createModelScanner } from './multipart.ts'
import type { ParsedRequest } from './source.ts'
import { mutate } from '../settings/mutate.ts'

/** Prepares a request whose format is not interpreted. Passthrough and Realtime forward it unchanged; Detect reads what it recognizes (llm.md §3). */
export async function prepareRaw(tools: PrepareContext, route: RouteType): Promise<Prepared> {
  const { exchange, target, source, record } = tools
  const { provider, settings } = target
  const { prices } = settings
  const base = { conversion: undefined, estimate: 0, isStreaming: false, isCharged: false }
  if (route !== 'Detect') {
    if (route === 'Realtime' && provider.realtime === undefined)
      throw new FormatError('unsupported', `unsupported conversion: from Realtime to provider ${provider.system}`)
    const path = route === 'Realtime' ? provider.realtime?.path : undefined
    const model = route === 'Realtime' ? (new URLSearchParams(exchange.request.target.split('?')[1]).get('model') ?? undefined) : undefined
    if (route === 'Realtime' && tools.keys.hasModels) tools.keys.check(model ?? '')
    checkFixedModel(tools, model ?? modelOfPath(exchange.request.target), route)
    record.begin({
      system: provider.system,
      requestModel: model,
      isStreaming: false,
      operation: 'chat',
      params: {},
      prices,
      prompt: () => [],
      promptTokens: () => 0,
    })
    return { ...base, draft: { path, body: source.stream(), reads: 'nothing' }, model }
  }
  const parsed = await readJson(tools)
  if ('unreadBytes' in parsed) {
    const promptTokens = tokensIn(parsed.unreadBytes)
    const { model, isStreaming } = detectRequest(exchange.request.target, {})
    if (model !== undefined) tools.keys.check(model)
    checkFixedModel(tools, model ?? tools.requested, route)
    record.begin({
      system: provider.system,
      requestModel: model,
      isStreaming,
      operation: 'chat',
      params: {},
      prices,
      prompt: () => [],
      promptTokens: () => promptTokens,
    })
    const counted = demandFor(tools, {}, model)
    const demand = counted && { ...counted, promptTokens }
    return {
      ...base,
      draft: { path: undefined, body: forwardDetected(tools, model), reads: 'nothing' },
      model,
      isStreaming,
      isCharged: true,
      isDetected: true,
      demand,
    }
  }
  const { json, text } = parsed
  const body = shapeDetected(tools, json)
  checkFixedModel(tools, modelOfPath(exchange.request.target), route)
  const { model, isStreaming, params } = detectRequest(exchange.request.target, body)
  // Providers disagree on whether the model of the path or of the body counts.
  for (const named of [model, modelOfPath(exchange.request.target)]) if (named !== undefined) tools.keys.check(named)
  record.begin({
    system: provider.system,
    requestModel: model,
    isStreaming,
    operation: 'chat',
    params,
    prices,
    prompt: () => [],
    promptTokens: () => promptTokensOf(body, false),
  })
  const demand = demandFor(tools, body, model)
  const sent = body === json ? source.forward() : [Buffer.from(renderBody(text, json, body))]
  return {
    ...base,
    draft: { path: undefined, body: sent, reads: isStreaming ? 'stream' : 'buffered' },
    model,
    isStreaming,
    isCharged: true,
    isDetected: true,
    demand,
  }
}

/** Only the model in a JSON body can be replaced by that of a target. */
function checkFixedModel({ model: wanted }: PrepareContext, model: string | undefined, route: RouteType): void {
  if (wanted === undefined || model === undefined || model === wanted) return
  const fix = 'remove model from the target in ai.models, or ask for the model by the name that the provider has for it'
  throw new FormatError('unsupported', `unsupported conversion: requests of type ${route} that name their model outside of a JSON body; ${fix}`)
}

/** What budgets reserve for a Detect request; undefined: no budget reads it. */
const demandFor = ({ exchange, target: { provider, settings } }: PrepareContext, body: JsonObject, model: string | undefined) =>
  exchange.tokenBudgets?.readsDemand === true ? demandOf(body, model, settings.prices.find(provider.system, model)) : undefined

/**
 * The body of a Detect request as JSON. Otherwise it is forwarded unread: one of another type, over the limit, or invalid. Such JSON is rejected if a
 * policy needs it, and its bytes are those of a prompt.
 */
async function readJson({ exchange, target, source, keys, limitBytes }: PrepareContext): Promise<ParsedRequest | { readonly unreadBytes: number }> {
  const { headers, body } = exchange.request
  const type = headers.get('content-type')
  const isJson = type === undefined || /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)
  // Some servers read JSON of any type, so a client could hide a prompt from a budget.
  const isCounted = exchange.tokenBudgets?.readsDemand === true && (isJson || !/^(?:multipart|audio|image|video)\//i.test(type))
  if (body === undefined || !(isJson || isCounted)) return { unreadBytes: 0 }
  const isNeeded = isJson && (keys.hasModels || (target.settings.mutations !== undefined && type !== undefined))
  const bytes = isNeeded ? undefined : await source.readWithinLimit()
  if (!isNeeded && bytes === undefined) return { unreadBytes: isJson && isCounted ? (body.length ?? limitBytes) : 0 }
  try {
    return await source.parse()
  } catch (error) {
    if (isNeeded || !(error instanceof FormatError)) throw error
    return { unreadBytes: isCounted && /^[\s\uFEFF]*\{/.test(bytes?.toString('utf8', 0, 4096) ?? '') ? (bytes?.length ?? 0) : 0 }
  }
}

/** The body to forward. The model of a form is recorded when it goes by, unless the path names one. */
function forwardDetected({ exchange, source, record }: PrepareContext, model: string | undefined): Body | undefined {
  const body = source.forward()
  const scanner = model === undefined ? createModelScanner(exchange.request.headers.get('content-type'), (found) => record.setRequestModel(found)) : undefined
  return body === undefined || scanner === undefined ? body : new ObservedBody(body, { onData: (chunk) => scanner.push(chunk) })
}

/** Applies the policies' field mutations. The model is not required. */
function shapeDetected({ target, exchange, model }: PrepareContext, json: JsonObject): JsonObject {
  const { mutations } = target.settings
  const addressed = model === undefined || typeof json['model'] !== 'string' ? json : { ...json, model }
  return mutations === undefined ? addressed : mutate(addressed, mutations, exchange)
}
