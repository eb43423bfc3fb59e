import type { ServerResponse } from 'node:http'
import { list, word } from './behaviour.ts'
import { sendJson } from './openai.ts'

type Json = Readonly<Record<string, unknown>>
const member = (value: unknown, name: string): Json => ((value as Json | undefined)?.[name] ?? {}) as Json

/**
 * Moderation services: OpenAI's moderation, Bedrock Guardrails, Model Armor. They reject text with `dragon`; Guardrails anonymizes the name `Smaug`. The words
 * `fail`, `nonsense` and `stall` make the service itself fail. Returns false if the path belongs to none of them.
 */
export function respondScreening(path: string, body: Json, response: ServerResponse): Promise<void> | void | false {
  if (path === '/v1/moderations') return screen(textsOf(body['input']), response, (texts) => moderation(texts))
  if (/^\/guardrail\/[^/]+\/version\/[^/]+\/apply$/.test(path)) {
    const texts = list(body['content']).map((block) => word(member(block, 'text')['text']))
    return screen(texts, response, guardrails)
  }
  const armor = /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/templates\/[^/]+:sanitize(UserPrompt|ModelResponse)$/.exec(path)
  if (armor === null) return false
  const data = member(body, armor[1] === 'UserPrompt' ? 'user_prompt_data' : 'model_response_data')
  return screen([word(data['text'])], response, armorResult)
}

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map((one) => word(one)) : [word(value)])

async function screen(texts: readonly string[], response: ServerResponse, judge: (texts: readonly string[]) => object): Promise<void> {
  const all = texts.join('\n')
  if (all.includes('stall')) return void (await new Promise((resolve) => response.once('close', resolve)))
  if (all.includes('fail')) return sendJson(response, { message: 'mock failure' }, {}, 500)
  if (all.includes('nonsense')) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"results": [')
  return sendJson(response, judge(texts), {})
}

const isForbidden = (texts: readonly string[]): boolean => texts.some((text) => text.includes('dragon'))

function moderation(texts: readonly string[]): object {
  const results = texts.map((text) => ({ flagged: isForbidden([text]), categories: { violence: isForbidden([text]) }, category_scores: {} }))
  return { id: 'modr-mock', model: 'omni-moderation-latest', results }
}

function guardrails(texts: readonly string[]): object {
  const isNamed = texts.some((text) => text.includes('Smaug'))
  if (isForbidden(texts)) {
    const topics = [{ name: 'dragons', type: 'DENY', action: 'BLOCKED' }]
    return { action: 'GUARDRAIL_INTERVENED', outputs: [{ text: 'Blocked by the guardrail' }], assessments: [{ topicPolicy: { topics } }], usage: {} }
  }
  if (!isNamed) return { action: 'NONE', outputs: [], assessments: [], usage: {} }
  const piiEntities = [{ type: 'NAME', match: 'Smaug', action: 'ANONYMIZED' }]
  const outputs = texts.map((text) => ({ text: text.replaceAll('Smaug', '{NAME}') }))
  return { action: 'GUARDRAIL_INTERVENED', outputs, assessments: [{ sensitiveInformationPolicy: { piiEntities, regexes: [] } }], usage: {} }
}

function armorResult(texts: readonly string[]): object {
  const matchState = isForbidden(texts) ? 'MATCH_FOUND' : 'NO_MATCH_FOUND'
  const filterResults = {
    rai: { raiFilterResult: { executionState: 'EXECUTION_SUCCESS', matchState } },
    sdp: { sdpFilterResult: { inspectResult: { executionState: 'EXECUTION_SUCCESS', matchState: 'NO_MATCH_FOUND' } } },
  }
  return { sanitizationResult: { filterMatchState: matchState, invocationResult: 'SUCCESS', filterResults } }
}
