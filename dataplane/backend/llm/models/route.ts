import { ProxyError } from '../../../request/exchange/error.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { isObject } from '../common/json.ts'
import { filledText } from '../common/read.ts'
import { FormatError, type ClientFormatEntry, type JsonObject } from '../common/types.ts'
import { detectRequest, modelOfPath } from '../request/detect.ts'
import type { KeyPolicy } from '../request/keys.ts'
import { nameModels, respondWithModel, respondWithModels } from '../request/models.ts'
import { boundaryOfChecked, FormModels } from '../request/form-models.ts'
import { entryOf } from '../request/shape.ts'
import type { RequestSource } from '../request/source.ts'
import type { RouteMatch } from '../settings/routes.ts'
import { ModelChoice } from './choice.ts'
import { ModelFacts } from './facts.ts'
import { findUsable, listUsable } from './list.ts'
import type { ModelTable } from './table.ts'
import { ModelView } from './view.ts'

interface RouteTools {
  readonly exchange: Exchange
  readonly source: RequestSource
  readonly keys: KeyPolicy
  readonly random: () => number
  readonly nowMs: () => number
  /** Called before expressions are evaluated, which may read it. */
  readonly onView: (view: ModelView) => void
}

/** Chooses the targets of a request by its model (llm.md §15.3). Rejects with a ProxyError or a FormatError. */
export async function chooseModel(table: ModelTable, { type }: RouteMatch, tools: RouteTools): Promise<ModelChoice> {
  const { exchange, source, keys } = tools
  const entry = entryOf(type, exchange.request.target)
  const format = entry?.format
  const { body, length, model } = entry === undefined ? await readRaw(exchange, source, type) : await readBody(exchange, source, entry)
  if (model === undefined) throw new FormatError('missing', 'missing field: model not specified')
  if (keys.hasModels) keys.check(model)
  const facts = new ModelFacts(body, format, length)
  const view = new ModelView(table, model, facts)
  tools.onView(view)
  view.choice = ModelChoice.start(table, model, { ...tools, facts })
  if (view.choice !== undefined) return view.choice
  throw new ProxyError('LLM_MODEL_NOT_FOUND', { detail: `${JSON.stringify(model.slice(0, 256))}; ${nameModels(listUsable(table, exchange, keys))}` })
}

/** Responds with the models that the caller may use, or with one of them. */
export function respondWithList(table: ModelTable, exchange: Exchange, keys: KeyPolicy, id: string | undefined): ResponseHead {
  const models = listUsable(table, exchange, keys)
  return id === undefined ? respondWithModels(exchange, models) : respondWithModel(exchange, id, findUsable(table, exchange, keys, id), models)
}

interface Named {
  readonly body: JsonObject
  /** Characters of the body. */
  readonly length: number
  readonly model: string | undefined
}

async function readBody(exchange: Exchange, source: RequestSource, { address }: ClientFormatEntry): Promise<Named> {
  const { json: received, text } = await source.parse()
  const json = address?.(received, exchange.request.target) ?? received
  return { body: json, length: text.length, model: filledText(json['model']) ?? modelOfPath(exchange.request.target) }
}

/** The model of a request whose body is not interpreted: of its path, its query, its JSON or its form. */
async function readRaw(exchange: Exchange, source: RequestSource, type: RouteMatch['type']): Promise<Named> {
  const { target, headers, body } = exchange.request
  const none = { body: {}, length: 0 }
  if (type === 'Realtime') return { ...none, model: new URLSearchParams(target.split('?')[1]).get('model') ?? undefined }
  const ofPath = modelOfPath(target)
  if (ofPath !== undefined || type === 'Passthrough' || body === undefined) return { ...none, model: ofPath }
  const bytes = await source.read()
  let model: string | undefined
  const boundary = boundaryOfChecked(headers.get('content-type') ?? '', headers.get('content-encoding'))
  if (boundary !== undefined) {
    const reader = new FormModels(boundary, (found) => void (model = found))
    reader.push(bytes)
    reader.end()
    return { ...none, length: bytes.length, model }
  }
  const { json, text } = await source.parse()
  return { body: json, length: text.length, model: detectRequest(target, isObject(json) ? json : {}).model }
}
