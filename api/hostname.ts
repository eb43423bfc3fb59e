const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const HOSTNAME = new RegExp(`^(\\*\\.)?${LABEL}(\\.${LABEL})*$`)
const MAX_LENGTH = 253

/**
 * What is wrong with the host name of a listener or route, by the pattern of the CRDs of Gateway API: lower case, `*` only as the first label. The text says
 * what to write instead, and has no part of the value except in `fixed`, which is undefined if the value does not tell.
 */
export function findHostnameProblem(name: string, isPrecise = false): { readonly text: string; readonly fixed?: string } | undefined {
  if (HOSTNAME.test(name) && name.length <= MAX_LENGTH && !(isPrecise && name.startsWith('*'))) return undefined
  const lower = name.toLowerCase()
  if (lower !== name && findHostnameProblem(lower, isPrecise) === undefined) return { text: 'must be in lower case', fixed: lower }
  const bare = lower.replace(/\.$/, '')
  if (bare !== lower && findHostnameProblem(bare, isPrecise) === undefined) return { text: 'must not end with a dot', fixed: bare }
  if (isPrecise && name.includes('*')) return { text: 'must be one host name, without *' }
  if (name === '*') return { text: 'must have a domain after the first label; leave the field out for any host, or write a name such as *.example.com' }
  if (name.includes('*')) return { text: 'must have * as the whole first label only; write a name such as *.example.com' }
  if (/[:/@[\]]/.test(name)) return { text: 'must be a host name without scheme, port and path; write a name such as shop.example.com' }
  return { text: `must be a DNS name of at most ${MAX_LENGTH} characters such as shop.example.com or *.example.com` }
}
