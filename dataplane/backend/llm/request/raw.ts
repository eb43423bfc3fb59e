import type { RouteType } from '#gen/config/types.ts'
import type { PrepareContext, Prepared } from './chat.ts'
import { demandOf, runsInBackground } from '../accounting/demand.ts'
import { binaryTokensOf, fileTokensOf, promptTokensOf } from '../accounting/prompt.ts'
import { tokensIn } from '../accounting/estimate.ts'
import { detectRequest, modelOfPath } from './detect.ts'
import { renderBody } from '../common/json.ts'
import { FormatError, type JsonObject } from '../common/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Body } from '../../../http/body.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { boundaryOfChecked, FormModels } from './form-models.ts'
import { boundaryOf, createModelScanner, readForm, type Form } from './multipart.ts'
import type { ParsedRequest } from './source.ts'
import { unitsOf } from './units.ts'
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
  const parsed = await readBody(tools)
  if (!('json' in parsed)) {
    const { fields, fileTokens } = parsed
    const { model, isStreaming } = detectRequest(exchange.request.target, fields)
    for (const named of [model, fields['model']]) if (typeof named === 'string') tools.keys.check(named)
    checkFixedModel(tools, model ?? tools.requested, route)
    const counted = demandFor(tools, fields, model)
    const demand = counted && { ...counted, promptTokens: counted.promptTokens + fileTokens }
    record.begin({
      system: provider.system,
      requestModel: model,
      isStreaming,
      operation: 'chat',
      params: {},
      prices,
      prompt: () => [],
      promptTokens: () => demand?.promptTokens ?? 0,
      units: unitsOf(exchange.request.target, fields),
    })
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
    units: unitsOf(exchange.request.target, body),
    isBackground: runsInBackground(body),
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
function checkFixedModel({ model: ofTarget, named }: PrepareContext, model: string | undefined, route: RouteType): void {
  const wanted = ofTarget ?? named
  if (wanted === undefined || model === undefined || model === wanted) return
  const fix = 'remove model from the target in ai.models, or ask for the model by the name that the provider has for it'
  throw new FormatError('unsupported', `unsupported conversion: requests of type ${route} that name their model outside of a JSON body; ${fix}`)
}

/** What budgets reserve for a Detect request; undefined: no budget reads it. */
const demandFor = ({ exchange, target: { provider, settings } }: PrepareContext, body: JsonObject, model: string | undefined) =>
  exchange.tokenBudgets?.readsDemand === true
    ? demandOf(body, model, settings.prices.find(provider.system, model), undefined, unitsOf(exchange.request.target, body))
    : undefined

const unread: Form = { fields: {}, fileTokens: 0 }

/**
 * The body of a Detect request: as JSON, else as a form or file, whose prompt budgets reserve. A body that no budget or policy reads, or over the limit,
 * is forwarded as a stream. Invalid JSON is rejected if a policy needs it, and its bytes are those of a prompt.
 */
async function readBody({ exchange, target, source, keys, limitBytes }: PrepareContext): Promise<ParsedRequest | Form> {
  const { headers, body } = exchange.request
  const type = headers.get('content-type')
  const isJson = type === undefined || /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)
  const isCounted = exchange.tokenBudgets?.readsDemand === true
  if (body === undefined || !(isJson || isCounted)) return unread
  if (isJson && (keys.hasModels || (target.settings.mutations !== undefined && type !== undefined))) return source.parse()
  const bytes = await source.readWithinLimit()
  if (bytes === undefined) return { fields: {}, fileTokens: isCounted ? binaryTokensOf(body.length ?? limitBytes, isJson ? '' : type) : 0 }
  // Some servers read JSON of any type, so a client could hide a prompt from a budget.
  if (!isJson && !/^[\s\uFEFF]*\{/.test(bytes.toString('utf8', 0, 4096))) return readFiles(exchange, bytes, type)
  try {
    return await source.parse()
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    return { fields: {}, fileTokens: isCounted ? tokensIn(bytes.length) : 0 }
  }
}

/** A form, or a body that is one file. A form that servers read differently counts as text. */
async function readFiles(exchange: Exchange, bytes: Buffer, type: string): Promise<Form> {
  const boundary = boundaryOf(type)
  if (boundary === undefined) return { fields: {}, fileTokens: fileTokensOf(bytes, type) }
  return (await runWhileConnected(readForm(bytes, boundary), exchange)) ?? { fields: {}, fileTokens: tokensIn(bytes.length) }
}

/**
 * The body to forward. The model of a form is recorded when it goes by, unless the path names one. One that the key may not use ends the body before its last
 * delimiter, so that the provider does not get a complete request.
 */
function forwardDetected({ exchange, source, record, keys }: PrepareContext, model: string | undefined): Body | undefined {
  const { headers } = exchange.request
  const boundary = keys.hasModels ? boundaryOfChecked(headers.get('content-type') ?? '', headers.get('content-encoding')) : undefined
  const body = source.forward()
  if (body !== undefined && boundary !== undefined) {
    return checkForm(body, boundary, (found) => {
      keys.check(found)
      if (model === undefined) record.setRequestModel(found)
    })
  }
  const scanner = model === undefined ? createModelScanner(exchange.request.headers.get('content-type'), (found) => record.setRequestModel(found)) : undefined
  return body === undefined || scanner === undefined ? body : new ObservedBody(body, { onData: (chunk) => scanner.push(chunk) })
}

/** A form that breaks off with the error of its check. */
function checkForm(body: Body, boundary: string, check: (model: string) => void): Body {
  const reader = new FormModels(boundary, check)
  const observed = new ObservedBody(body, {
    onData: (chunk) => attempt(() => reader.push(chunk)),
    onComplete: () => void attempt(() => reader.end()),
  })
  const attempt = (read: () => void): void => {
    try {
      read()
    } catch (error) {
      const { message } = error as Error
      observed.fail(error instanceof FormatError ? new ProxyError('LLM_REQUEST', { detail: message, cause: error }) : (error as Error))
    }
  }
  return observed
}

/** Applies the policies' field mutations. The model is not required. */
function shapeDetected({ target, exchange, model: ofTarget, named }: PrepareContext, json: JsonObject): JsonObject {
  const { mutations } = target.settings
  const model = ofTarget ?? named
  const addressed = model === undefined || typeof json['model'] !== 'string' || json['model'] === model ? json : { ...json, model }
  return mutations === undefined ? addressed : mutate(addressed, mutations, exchange)
}
