import type { ServerRules } from '#api/llm-presets.ts'
import type { ModelCapabilities } from '#api/price-catalog.ts'
import type { BackendAI } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { checkCompletionsBody } from './admission.ts'
import { chooseConversion } from '../convert/index.ts'
import type { LlmHooks } from '../hooks/index.ts'
import { countTokens } from '../usage/count.ts'
import { isShortJson } from '#api/json/index.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { printBytesInSteps, renderBytesInSteps } from '../common/json.ts'
import { checkShape } from '../common/shapes.ts'
import {
  FormatError,
  isChatFormat,
  isCountFormat,
  isGeminiFormat,
  purposeOf,
  type ClientFormatEntry,
  type Conversion,
  type JsonObject,
  type RequestContext,
  type RequestMemo,
  type Target,
} from '../common/types.ts'
import { modalitiesOf } from '../common/modalities.ts'
import { unsupported } from '../common/unsupported.ts'
import type { KeyPolicy } from './keys.ts'
import { jsonResponse } from './models.ts'
import type { PromptGuards } from '../guards/index.ts'
import type { LlmRecord } from '../accounting/record.ts'
import { rulesOf } from '../rules/index.ts'
import { shapeRequest } from './shape.ts'
import type { RequestSource } from './source.ts'
import type { LlmTarget } from '../choice/target.ts'
import type { Draft } from './upstream-request.ts'
import type { LlmDemand } from '../../../request/exchange/token-budgets.ts'
import { demandOf, runsInBackground } from '../accounting/demand.ts'
import { promptTokensOf } from '../accounting/prompt.ts'

/** The inputs for preparing one attempt. */
export interface PrepareContext {
  readonly exchange: Exchange
  readonly target: LlmTarget
  readonly source: RequestSource
  readonly record: LlmRecord
  readonly keys: KeyPolicy
  readonly limitBytes: number
  /** The provider does not have the Responses API, although its kind does. */
  readonly lacksResponses: boolean
  /** Hooks of plugins; undefined if there are none. */
  readonly hooks: LlmHooks | undefined
  /** No entry of `ai.routes` matches. */
  readonly isDefault: boolean
  /** The model that the target of a model is asked for; it replaces that of the provider. */
  readonly model?: string | undefined
  /** The name that the target is asked by, if the backend has models; it replaces that of the client. */
  readonly named?: string | undefined
  /** The name that the client asked for, if the backend has models. */
  readonly requested?: string | undefined
  /** The request is the gateway's own: that of the client was enriched before it was copied. */
  readonly isOwn?: boolean
  /** The model of a budget that the request exceeds; it replaces that of the request. */
  readonly replacement?: string
}

/** A request ready to be sent to one provider, and the data needed to read the response. */
export interface Prepared {
  readonly draft: Draft
  /** The request in the client's format, after the guards; undefined if it is not interpreted. */
  readonly body?: JsonObject
  /** undefined if the response is forwarded unchanged. */
  readonly conversion: { readonly with: Conversion; readonly entry: ClientFormatEntry; readonly memo: RequestMemo } | undefined
  /** Guards of the response, with the hooks of plugins. */
  readonly guards?: PromptGuards | undefined
  /** Reads responses in the client's format, as the guards let them through. */
  readonly guarded?: Conversion | undefined
  readonly model: string | undefined
  readonly isStreaming: boolean
  /** Whether token budgets apply. */
  readonly isCharged: boolean
  /** Tokens of the prompt to reserve from token budgets; 0 if nothing is reserved. */
  readonly estimate: number
  /** Read by budgets. */
  readonly demand?: LlmDemand | undefined
  /** The request in the provider's format if `ai.cache` is set; undefined: the response is not cached. */
  readonly cacheBody?: JsonObject | undefined
  /** The response is searched for usage in any known format. */
  readonly isDetected?: boolean
}

/**
 * Prepares a request in a known format: applies policies and guards, then converts to the provider's format (llm.md §2 steps 6 to
 * 11). Returns a response if a guard rejects the request, or if the gateway counts the tokens itself. Rejects with a FormatError or a ProxyError.
 */
export async function prepareChat(context: PrepareContext, entry: ClientFormatEntry): Promise<Prepared | { readonly response: ResponseHead }> {
  const { exchange, target, source, record, keys } = context
  const { provider, settings, guards } = target
  const { bytes: original, text, json: received, members } = await source.parse()
  const json = entry.address?.(received, exchange.request.target) ?? received
  if (context.hooks !== undefined) checkShape(entry.format, json)
  const hooked = context.hooks === undefined ? { body: json } : await context.hooks.request(json, entry)
  if ('rejection' in hooked) return { response: hooked.rejection }
  const given = hooked.body
  const wanted = context.replacement ?? context.named
  const isCount = isCountFormat(entry.format)
  const isChat = isChatFormat(entry.format)
  const purpose = purposeOf(entry.format)
  const { body: shaped, model } = shapeRequest(
    wanted === undefined || wanted === given['model'] ? given : { ...given, model: wanted },
    target,
    exchange,
    keys.check,
    context.replacement === undefined ? context.model : undefined,
  )
  if (entry.format === 'completions') checkCompletionsBody(exchange, shaped)
  checkShape(entry.format, shaped)
  const enriched = settings.enrichment === undefined || context.isOwn === true ? shaped : entry.enrich(shaped, settings.enrichment)
  const isStreaming = isChat && entry.isStreaming(enriched)
  const begin = (body: JsonObject): void => {
    record.begin({
      system: provider.system,
      requestModel: model,
      isStreaming,
      operation: purpose === 'count' ? 'chat' : purpose,
      params: entry.params(body),
      prices: settings.prices,
      prompt: () => entry.flattenRequest(body),
      promptTokens: () => promptTokensOf(body),
      units: entry.units?.(body),
      isBackground: runsInBackground(body),
    })
  }
  begin(enriched)
  // The model is known now, so a budget may replace it.
  const replacement = context.replacement === undefined && !isCount ? exchange.tokenBudgets?.replacement() : undefined
  if (replacement !== undefined) return prepareChat({ ...context, replacement }, entry)
  let body = enriched
  // A moderation asks about the very text that guards would reject.
  if (guards !== undefined && (isChat || purpose === 'rerank')) {
    const verdict = await guards.request(enriched, { exchange, entry, isStreaming })
    if ('rejection' in verdict) return { response: verdict.rejection }
    body = verdict.body
    begin(body)
  }
  const formats = provider.supports(entry.format, model)
  const conversion = chooseConversion(entry.format, context.lacksResponses ? formats.filter((format) => format !== 'responses') : formats)
  if (conversion === undefined) {
    if (isCount) {
      const count = await countTokens(model, entry.flattenRequest(body))
      // Not as complete: no upstream has confirmed the model.
      record.finish({ usage: {}, responseModel: undefined, serviceTier: undefined, countTokens: count, completion: [], toolCalls: [] }, 'error')
      return { response: jsonResponse(200, isGeminiFormat(entry.format) ? { totalTokens: count } : { input_tokens: count }) }
    }
    throw new FormatError('unsupported', `unsupported conversion: from ${entry.title} to provider ${provider.system} (model ${model})`)
  }
  const capabilities = settings.prices.capabilitiesOf(provider.system, model)
  if (capabilities !== undefined && isChat) checkCapabilities(body, capabilities, model)
  const api = provider.targetOf(conversion.to, capabilities?.family ?? model)
  record.aim(api)
  const server = conversion.to === 'completions' ? provider.server : undefined
  const converted = conversion.request(body, requestContext(context, model, api, { capabilities, server }))
  checkOmitted(converted.omitted, settings.section.unsupported)
  record.omit(converted.omitted)
  const call = { format: conversion.to, model, isStreaming }
  const finished = provider.finishBody?.(converted.body, call) ?? converted.body
  // A stored response would have what a plugin changed for another caller.
  const isCached = isChat && settings.cache !== undefined && context.hooks?.changesResponses !== true
  // With guards, hooks or a cache, print the body again, so that the provider reads exactly what they read: nested duplicate keys, for example, are removed.
  const isPrinted = !conversion.isNative || guards !== undefined || context.hooks !== undefined || isCached
  const rendering = isPrinted
    ? printBytesInSteps(finished)
    : finished === received
      ? undefined
      : renderBytesInSteps(original, text, members, received, finished)
  const bytes = rendering === undefined ? [original] : isShortJson(text) ? runSync(rendering) : await runWhileConnected(rendering, exchange)
  return {
    draft: {
      path: provider.pathFor(call),
      api: { from: entry.format, to: conversion.to, rules: rulesOf(api, model, capabilities, server) },
      body: bytes,
      reads: isStreaming ? 'stream' : 'buffered',
    },
    body,
    conversion: { with: conversion, entry, memo: converted.memo },
    guards: isChat && context.hooks !== undefined ? context.hooks.around(guards) : guards,
    guarded: isChatFormat(entry.format) ? chooseConversion(entry.format, [entry.format]) : undefined,
    model,
    isStreaming,
    isCharged: !isCount,
    cacheBody: isCached ? finished : undefined,
    demand: isCount ? undefined : demandFor(context, body, model, entry),
    estimate: hasReservation(context) ? await countTokens(model, entry.flattenRequest(body)) : 0,
  }
}

/** What budgets reserve for a request; undefined: no budget reads it. */
function demandFor(
  { exchange, target: { provider, settings } }: PrepareContext,
  body: JsonObject,
  model: string,
  entry: ClientFormatEntry,
): Prepared['demand'] {
  if (exchange.tokenBudgets?.readsDemand !== true) return undefined
  return demandOf(body, model, settings.prices.find(provider.system, model), entry.format, entry.units?.(body))
}

/** Throws a FormatError for the first part that was left out, if `ai.unsupported` is Reject. */
function checkOmitted([place]: readonly string[], unsupportedParts: BackendAI['unsupported']): void {
  if (place !== undefined && unsupportedParts === 'Reject')
    throw unsupported(place, 'this provider does not support it; remove it, or set ai.unsupported to Omit')
}

/** Throws a FormatError for parts of a request that the model does not read, by the catalog of the policy. */
function checkCapabilities(body: JsonObject, { tools, images }: ModelCapabilities, model: string): void {
  const reject = (field: string, parts: string): never => {
    throw unsupported(field, `the price catalog says that the model ${JSON.stringify(model)} does not take ${parts}; remove them, or use another model`)
  }
  if (tools === false) for (const field of ['tools', 'functions']) if (Array.isArray(body[field]) && body[field].length > 0) reject(field, 'tools')
  if (images === false && modalitiesOf(body).has('image')) reject(['messages', 'input'].find((field) => body[field] !== undefined) ?? 'contents', 'images')
}

/** Whether the prompt's tokens are reserved from token budgets before the request is sent. */
function hasReservation({ exchange, target }: PrepareContext): boolean {
  return target.settings.section.reserveTokens === true && exchange.tokenBudgets !== undefined
}

function requestContext(
  { exchange, target }: PrepareContext,
  model: string,
  api: Target,
  { capabilities, server }: { readonly capabilities: ModelCapabilities | undefined; readonly server: ServerRules | undefined },
): RequestContext {
  const { headers } = exchange.request
  const { provider, settings } = target
  const betas = headers.has('anthropic-beta') ? headers.getAll('anthropic-beta').flatMap((line) => line.split(',').map((beta) => beta.trim())) : []
  const version = headers.get('anthropic-version')
  const metadata = headers.get('x-bedrock-metadata')
  return {
    model,
    target: api,
    ...(capabilities && { capabilities }),
    ...(server && { server }),
    ...(provider.guardrail && { guardrail: provider.guardrail }),
    ...(settings.promptCaching && { promptCaching: settings.promptCaching }),
    ...(betas.length > 0 && { betas: betas.filter((beta) => beta !== '') }),
    ...(version !== undefined && { anthropicVersion: version }),
    ...(metadata !== undefined && { bedrockMetadata: metadata }),
  }
}
