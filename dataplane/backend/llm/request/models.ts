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

/** Lists the models that clients may name: aliases without `*`, and the configured models of providers (llm.md §3, D2). */
export function listModels(groups: readonly (readonly LlmTarget[])[], isAllowed: (model: string) => boolean): ResponseHead {
  const owners = new Map<string, string>()
  for (const { settings, provider } of groups.flat()) {
    for (const name of Object.keys(settings.section.modelAliases ?? {})) if (!name.includes('*') && !owners.has(name)) owners.set(name, provider.system)
    if (provider.model !== undefined && !owners.has(provider.model)) owners.set(provider.model, provider.system)
  }
  const data = [...owners].filter(([id]) => isAllowed(id)).map(([id, owner]) => ({ id, object: 'model', created: 0, owned_by: owner }))
  return jsonResponse(200, { object: 'list', data })
}
