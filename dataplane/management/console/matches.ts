import type { RuleMatch } from '#api/management/routes.ts'
import type { RouteMatch, ValueMatch } from '#gen/config/types.ts'

/** A match with its text. */
export function listMatch(match: RouteMatch): RuleMatch {
  return {
    text: describeMatch(match),
    path: match.path ?? { type: 'PathPrefix', value: '/' },
    method: match.method ?? null,
    headers: (match.headers ?? []).map(listValue),
    queryParams: (match.queryParams ?? []).map(listValue),
  }
}

const listValue = ({ name, type, value }: ValueMatch): RuleMatch['headers'][number] => ({ name, type: type ?? 'Exact', value })

/** A match as one line: `GET PathPrefix /shop, header x-beta: yes`. */
export function describeMatch({ path = { type: 'PathPrefix', value: '/' }, method, headers = [], queryParams = [] }: RouteMatch): string {
  const sign = (type: ValueMatch['type']): string => (type === 'RegularExpression' ? '~' : '=')
  return [
    `${method === undefined ? '' : `${method} `}${path.type} ${path.value}`,
    ...headers.map(({ name, type, value }) => `header ${name}${sign(type)}${value}`),
    ...queryParams.map(({ name, type, value }) => `query ${name}${sign(type)}${value}`),
  ].join(', ')
}
