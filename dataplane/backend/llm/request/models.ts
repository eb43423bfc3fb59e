import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { printJson } from '../common/json.ts'
import type { LlmTarget } from '../choice/target.ts'

/** A JSON response of the gateway's own. */
export function jsonResponse(status: number, value: unknown): ResponseHead {
  const body = new BufferBody(printJson(value))
  return { status, headers: new HeaderList(['content-type', 'application/json', 'content-length', String(body.length)]), body, upgraded: undefined }
}

/** Most names of models in an error. */
const MAX_NAMES = 20

/**
 * Lists the models that clients may name: aliases without `*`, and the configured models of providers (llm.md §3, D2). With `id`, responds with this
 * model, which may also match an alias with `*`.
 */
export function listModels(groups: readonly (readonly LlmTarget[])[], isAllowed: (model: string) => boolean, id?: string): ResponseHead {
  const owners = new Map<string, string>()
  for (const { settings, provider } of groups.flat()) {
    for (const name of Object.keys(settings.section.modelAliases ?? {})) if (!name.includes('*') && !owners.has(name)) owners.set(name, provider.system)
    if (provider.model !== undefined && !owners.has(provider.model)) owners.set(provider.model, provider.system)
  }
  const models = [...owners].filter(([name]) => isAllowed(name))
  if (id === undefined) return jsonResponse(200, { object: 'list', data: models.map(describeModel) })
  const matching = groups.flat().find(({ settings }) => settings.resolveAlias(id) !== id)
  const owner = owners.get(id) ?? matching?.provider.system
  if (owner !== undefined && isAllowed(id)) return jsonResponse(200, describeModel([id, owner]))
  const names = models.slice(0, MAX_NAMES).map(([name]) => name)
  const hint = names.length === 0 ? 'no models are listed' : `use one of ${names.join(', ')}${models.length > MAX_NAMES ? ' …' : ''}`
  const message = `the model ${JSON.stringify(id.slice(0, 256))} is not in the list of models; ${hint}`
  return jsonResponse(404, { error: { message, type: 'invalid_request_error', param: 'model', code: 'model_not_found' } })
}

function describeModel([id, owner]: readonly [string, string]): object {
  return { id, object: 'model', created: 0, owned_by: owner }
}
