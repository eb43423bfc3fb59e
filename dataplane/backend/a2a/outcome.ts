import { isJsonObject as isRecord } from '#api/json/index.ts'

type Fields = Readonly<Partial<Record<`a2a.${string}`, string | number>>>

const MAX_TEXT = 256
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value.slice(0, MAX_TEXT) : undefined)

/** The log fields of a response: of JSON-RPC, or of the HTTP+JSON binding, whose body is the result or `{error}`. */
export function outcomeFields(body: unknown): Fields {
  if (!isRecord(body)) return {}
  if (isRecord(body['error'])) {
    const { code, status } = body['error']
    const known = typeof code === 'number' && Number.isSafeInteger(code) ? code : textOf(status)
    return { 'a2a.response.outcome': 'error', ...(known !== undefined && { 'a2a.response.error_code': known }) }
  }
  return { 'a2a.response.outcome': 'success', ...resultFields('result' in body ? body['result'] : body) }
}

/** A task or a message: flat with `kind` in A2A 0.3, a member of the result in 1.0. */
function resultFields(result: unknown): Fields {
  if (!isRecord(result)) return {}
  const [kind, value] = isRecord(result['task'])
    ? (['task', result['task']] as const)
    : isRecord(result['message'])
      ? (['message', result['message']] as const)
      : ([textOf(result['kind']), result] as const)
  const state = isRecord(value['status']) ? textOf(value['status']['state']) : undefined
  const context = textOf(value['contextId'])
  const known = kind ?? (state === undefined ? undefined : 'task')
  return {
    ...(known !== undefined && { 'a2a.result.kind': known }),
    ...(state !== undefined && { 'a2a.task.state': state }),
    ...(context !== undefined && { 'a2a.context.id': context }),
  }
}
