import type { Exchange } from '../../exchange/exchange.ts'
import type { ResponseHead } from '../../http/message.ts'
import { chooseConversion } from '../convert/index.ts'
import { countTokens } from '../usage/count.ts'
import { printJson, renderBytes } from '../common/json.ts'
import { checkShape } from '../common/shapes.ts'
import { FormatError, type ClientFormatEntry, type Conversion, type JsonObject, type RequestContext, type RequestMemo } from '../common/types.ts'
import type { KeyPolicy } from './keys.ts'
import { jsonResponse } from './models.ts'
import type { LlmRecord } from '../accounting/record.ts'
import { shapeRequest } from './shape.ts'
import type { RequestSource } from './source.ts'
import type { LlmTarget } from '../choice/target.ts'
import type { Draft } from './upstream-request.ts'

/** What preparing an attempt takes. */
export interface PrepareContext {
  readonly exchange: Exchange
  readonly target: LlmTarget
  readonly source: RequestSource
  readonly record: LlmRecord
  readonly keys: KeyPolicy
  readonly limitBytes: number
}

/** A request ready to be sent to one provider, and what reading its answer takes. */
export interface Prepared {
  readonly draft: Draft
  /** Undefined: the answer is forwarded as it is. */
  readonly conversion: { readonly with: Conversion; readonly entry: ClientFormatEntry; readonly memo: RequestMemo } | undefined
  readonly model: string | undefined
  readonly isStreaming: boolean
  /** Token budgets apply. */
  readonly isCharged: boolean
  /** Tokens of the prompt, where somebody counted. */
  readonly estimate: number
  /** The answer is searched for usage, whatever its format. */
  readonly isDetected?: boolean
}

/** A request in a known format: shaped by policy, guarded, in the provider's format (llm.md §2 steps 6 to 11). */
export async function prepareChat(tools: PrepareContext, entry: ClientFormatEntry): Promise<Prepared | { readonly answer: ResponseHead }> {
  const { exchange, target, source, record, keys } = tools
  const { provider, settings, guards } = target
  const { bytes: given, text, json, members } = await source.parse()
  const isCount = entry.format === 'tokenCount'
  const isChat = !isCount && entry.format !== 'embeddings'
  const { body: shaped, model } = shapeRequest(json, target, exchange, keys.check)
  checkShape(entry.format, shaped)
  const enriched = settings.enrichment === undefined ? shaped : entry.enrich(shaped, settings.enrichment)
  const isStreaming = isChat && entry.isStreaming(enriched)
  const begin = (body: JsonObject): void =>
    record.begin({
      system: provider.system,
      requestModel: model,
      isStreaming,
      operation: entry.format === 'embeddings' ? 'embeddings' : 'chat',
      params: entry.params(body),
      prices: settings.prices,
      prompt: () => entry.flattenRequest(body),
    })
  begin(enriched)
  let body = enriched
  if (guards !== undefined && isChat) {
    const verdict = await guards.request(enriched, { exchange, entry, isStreaming })
    if ('rejection' in verdict) return { answer: verdict.rejection }
    body = verdict.body
    begin(body)
  }
  const conversion = chooseConversion(entry.format, provider.supports(entry.format, model))
  if (conversion === undefined) {
    if (isCount) return { answer: jsonResponse(200, { input_tokens: await countTokens(model, entry.flattenRequest(body)) }) }
    throw new FormatError('unsupported', `unsupported conversion: from ${entry.title} to provider ${provider.system} (model ${model})`)
  }
  const converted = conversion.request(body, contextOf(tools, model))
  const call = { format: conversion.to, model, isStreaming }
  const finished = provider.finishBody?.(converted.body, call) ?? converted.body
  // What guards have judged is what is sent: duplicate keys inside, say, are gone once it is printed anew.
  const isPrinted = !conversion.isNative || guards !== undefined
  const bytes = isPrinted ? [Buffer.from(printJson(finished))] : finished === json ? [given] : renderBytes(given, text, members, json, finished)
  return {
    draft: { path: provider.pathFor(call), from: entry.format, body: bytes, reads: isStreaming ? 'stream' : 'whole' },
    conversion: { with: conversion, entry, memo: converted.memo },
    model,
    isStreaming,
    isCharged: !isCount,
    estimate: hasReservation(tools) ? await countTokens(model, entry.flattenRequest(body)) : 0,
  }
}

/** What the prompt takes from token budgets is taken at once: a policy wants that, and there are budgets. */
function hasReservation({ exchange, target }: PrepareContext): boolean {
  return target.settings.section.reserveTokens === true && exchange.tokenBudgets !== undefined
}

function contextOf({ exchange, target }: PrepareContext, model: string): RequestContext {
  const { headers } = exchange.request
  const { provider, settings } = target
  const betas = headers.has('anthropic-beta') ? headers.getAll('anthropic-beta').flatMap((line) => line.split(',').map((beta) => beta.trim())) : []
  const version = headers.get('anthropic-version')
  const metadata = headers.get('x-bedrock-metadata')
  return {
    model,
    ...(provider.guardrail && { guardrail: provider.guardrail }),
    ...(settings.promptCaching && { promptCaching: settings.promptCaching }),
    ...(betas.length > 0 && { betas: betas.filter((beta) => beta !== '') }),
    ...(version !== undefined && { anthropicVersion: version }),
    ...(metadata !== undefined && { bedrockMetadata: metadata }),
  }
}
