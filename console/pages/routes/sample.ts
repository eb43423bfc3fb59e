import type { RouteDetail } from '#api/management/routes.ts'
import { emptyDraft, type Draft } from '../../api/draft.ts'

type Rule = RouteDetail['rules'][number]

/** A request that the first match of a rule accepts, as far as it can be derived. */
export function draftOf(
  route: Pick<RouteDetail, 'listeners' | 'hostnames' | 'kind' | 'namespace' | 'name'>,
  rule: Pick<Rule, 'matches' | 'index' | 'name'>,
): Draft {
  const [match] = rule.matches
  const host = (route.hostnames[0] ?? 'localhost').replace(/^\*\./, 'www.')
  const exact = (list: readonly { type: string; name: string; value: string }[]) => list.filter(({ type }) => type !== 'RegularExpression')
  const isPattern = match?.path.type === 'RegularExpression'
  const query = exact(match?.queryParams ?? [])
    .map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&')
  const hasPatterns = isPattern || [...(match?.headers ?? []), ...(match?.queryParams ?? [])].some(({ type }) => type === 'RegularExpression')
  return {
    ...emptyDraft,
    listener: route.listeners[0] ?? '',
    method: match?.method ?? 'GET',
    url: `${host}${isPattern ? '/' : (match?.path.value ?? '/')}${query === '' ? '' : `?${query}`}`,
    headers: exact(match?.headers ?? [])
      .map(({ name, value }) => `${name}: ${value}`)
      .join('\n'),
    note: `From rule ${rule.name ?? rule.index} of ${route.kind} ${route.namespace}/${route.name}.${hasPatterns ? ' Values for regular expressions are missing.' : ''}`,
  }
}
