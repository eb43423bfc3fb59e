import { bedrockHost, modelArmorHost } from '#api/backend-hosts.ts'
import type { CloudGuardrails, ModelArmor, ModerationAPI } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import { postJson, itemsOf, member, vendorDestination, type GuardConfig } from './service.ts'
import type { Guard, Outcome, Subject } from './types.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'

const ALLOW: Outcome = { action: 'Allow' }
const REJECT: Outcome = { action: 'Reject' }
const DEFAULT_MODERATION_MODEL = 'omni-moderation-latest'

const readTexts = async (subject: Subject): Promise<readonly string[]> => await runWhileConnected(subject.texts(), subject.exchange)

/** OpenAI's moderation endpoint (llm.md §13.4): anything flagged is rejected. */
export function compileModeration({ model = DEFAULT_MODERATION_MODEL, policies }: ModerationAPI, config: GuardConfig): Guard {
  return async (subject) => {
    const input = await readTexts(subject)
    const destination = vendorDestination(config, { host: 'api.openai.com', variable: 'OPENAI_BASE_URL', policies })
    const reply = await postJson(config, subject.exchange, destination, { target: '/v1/moderations', body: { input, model } })
    const results = member(reply, 'results')
    if (!Array.isArray(results)) throw new ProxyError('GUARD_FAILED', { cause: new Error('the response of the moderation endpoint has no results') })
    return results.some((result) => member(result, 'flagged') === true) ? REJECT : ALLOW
  }
}

/** Amazon Bedrock Guardrails (llm.md §13.5): sends one block per text, and masks texts one by one. */
export function compileCloudGuardrails({ identifier, version, region, policies }: CloudGuardrails, config: GuardConfig): Guard {
  const target = `/guardrail/${encodeURIComponent(identifier)}/version/${encodeURIComponent(version)}/apply`
  return async (subject) => {
    const texts = await readTexts(subject)
    if (texts.length === 0) return ALLOW
    const destination = vendorDestination(config, {
      host: bedrockHost(region),
      variable: 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
      policies,
      auth: { cloudA: {} },
    })
    const reply = await postJson(config, subject.exchange, destination, {
      target,
      body: { source: subject.phase === 'Request' ? 'INPUT' : 'OUTPUT', content: texts.map((text) => ({ text: { text } })) },
      cloud: { signing: { region, service: 'bedrock' } },
    })
    const action = member(reply, 'action')
    if (action === 'NONE') return ALLOW
    if (action !== 'GUARDRAIL_INTERVENED') throw new ProxyError('GUARD_FAILED', { cause: new Error('the response of Bedrock Guardrails has no action') })
    const assessments = member(reply, 'assessments')
    const outputs = itemsOf(member(reply, 'outputs')).map((output) => member(output, 'text'))
    const isMasking = !holdsAction(assessments, 'BLOCKED') && holdsAction(assessments, 'ANONYMIZED')
    if (!isMasking || outputs.length !== texts.length || !outputs.every((text) => typeof text === 'string')) return REJECT
    subject.replaceTexts(outputs)
    return { action: 'Mask' }
  }
}

/** Whether any nested object has that `action`. */
function holdsAction(value: unknown, action: string): boolean {
  const open = [value]
  for (let next = open.pop(); open.length > 0 || next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue
    if (member(next, 'action') === action) return true
    open.push(...(Object.values(next) as unknown[]))
  }
  return false
}

const DEFAULT_LOCATION = 'us-central1'
/** The filters of Model Armor, and the members of their results that contain the match state (none: the result itself). */
const armorFilters: Readonly<Record<string, readonly string[]>> = {
  raiFilterResult: [],
  piAndJailbreakFilterResult: [],
  maliciousUriFilterResult: [],
  csamFilterResult: [],
  // The name that the API currently returns.
  csamFilterFilterResult: [],
  virusScanFilterResult: [],
  sdpFilterResult: ['inspectResult', 'deidentifyResult'],
}

/** Google Cloud Model Armor (llm.md §13.6): rejects if any filter matches; never masks. */
export function compileModelArmor({ templateId, projectId, location = DEFAULT_LOCATION, policies }: ModelArmor, config: GuardConfig): Guard {
  const template = `/v1/projects/${encodeURIComponent(projectId)}/locations/${encodeURIComponent(location)}/templates/${encodeURIComponent(templateId)}`
  return async (subject) => {
    const text = (await readTexts(subject)).join('\n')
    const destination = vendorDestination(config, {
      host: modelArmorHost(location),
      variable: 'CLOUDSDK_API_ENDPOINT_OVERRIDES_MODELARMOR',
      policies,
      auth: { cloudC: {} },
    })
    const isRequest = subject.phase === 'Request'
    const reply = await postJson(config, subject.exchange, destination, {
      target: `${template}:${isRequest ? 'sanitizeUserPrompt' : 'sanitizeModelResponse'}`,
      body: isRequest ? { user_prompt_data: { text } } : { model_response_data: { text } },
    })
    const result = member(reply, 'sanitizationResult')
    if (typeof result !== 'object' || result === null)
      throw new ProxyError('GUARD_FAILED', { cause: new Error('the response of Model Armor has no sanitizationResult') })
    const filters = member(result, 'filterResults')
    // A template without filters has no results but reports NO_MATCH_FOUND.
    if (typeof filters !== 'object' || filters === null) {
      if (member(result, 'filterMatchState') === 'NO_MATCH_FOUND') return ALLOW
      throw new ProxyError('GUARD_FAILED', { cause: new Error('the response of Model Armor has no filterResults') })
    }
    return Object.values(filters).some(isMatched) ? REJECT : ALLOW
  }
}

/** An entry of the map or list of filter results. */
function isMatched(entry: unknown): boolean {
  return Object.entries(armorFilters).some(([name, parts]) => {
    const filter = member(entry, name)
    const results = parts.length === 0 ? [filter] : parts.map((part) => member(filter, part))
    return results.some((result) => member(result, 'matchState') === 'MATCH_FOUND')
  })
}
