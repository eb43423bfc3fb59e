import { findKeyProblems } from '#api/credentials/key-weakness.ts'
import type { Budget, BudgetLimit, GatewayRef, Policy, Secret, ShortGuardrails, ShortKey, ShortKeyBudget } from '#gen/config/types.ts'
import type { Expansion, Path } from './expansion.ts'
import type { SchemaProblem } from '../validate.ts'

/** Field of `apiKey` with the name of the key in `keys`. */
export const KEY_NAME = 'name'
const KEYS = 'keys'
const GUARDRAILS = 'guardrails'
/** Most budgets of a policy. */
const MAX_BUDGETS = 16

type Access = Pick<Expansion, 'secrets' | 'policies' | 'problems'> & { readonly warnings: readonly SchemaProblem[] }

/** Expands `keys`: a Secret, and a policy of all ports that demands one of its keys. */
export function expandKeys(keys: Readonly<Record<string, ShortKey>>, gateway: GatewayRef): Access {
  const problems: SchemaProblem[] = []
  const report = (path: Path, text: string): void => void problems.push({ path: [KEYS, ...path], text, code: 'PX3008' })
  const data: Record<string, string> = {}
  for (const [name, { key, keyHash, models, expires, metadata }] of Object.entries(keys)) {
    if (!/^[A-Za-z0-9]([-._@A-Za-z0-9]*[A-Za-z0-9])?$/.test(name) || name.length > 63)
      report([name], 'is the name of a key, which has at most 63 letters, digits, -, ., _ and @; rename it')
    for (const field of [KEY_NAME, 'models'])
      if (metadata?.[field] !== undefined)
        report([name, 'metadata', field], `is ${field === KEY_NAME ? 'the name of the key' : `${field} of the key`}; remove it`)
    // The entry is JSON, also with a placeholder in place of the key.
    if (key !== undefined && /["\\]/.test(key)) report([name, 'key'], 'contains a quote or a backslash; use a key of other characters, or keyHash')
    data[name] = JSON.stringify({
      ...(key === undefined ? { keyHash } : { key }),
      ...(expires !== undefined && { expires }),
      metadata: { ...metadata, [KEY_NAME]: name, ...(models && { models }) },
    })
  }
  const warnings: SchemaProblem[] = []
  const names = Object.keys(data)
  for (const [index, text] of findKeyProblems(Object.entries(data), Date.now())) {
    const path = [KEYS, names[index] ?? '']
    if (text.startsWith('has an expires')) report([names[index] ?? '', 'expires'], 'must be a time such as 2027-01-31T00:00:00Z')
    else warnings.push({ path, text, code: 'PX3010' })
  }
  const budgets = toBudgets(keys, report)
  const secret: Secret = { key: `opaque/${gateway.namespace}/${KEYS}`, type: 'opaque', data }
  return {
    secrets: [{ path: [KEYS], value: secret }],
    policies: [
      {
        path: [KEYS],
        value: {
          ...policyOf(KEYS, 'traffic', gateway),
          traffic: { apiKeyAuthentication: { mode: 'Strict', secretRef: { secret: secret.key } }, ...(budgets.length > 0 && { budgets }) },
        },
      },
    ],
    problems,
    warnings,
  }
}

/** A budget for each key; keys with equal limits share an entry, which counts each by itself. */
function toBudgets(keys: Readonly<Record<string, ShortKey>>, report: (path: Path, text: string) => void): Budget[] {
  const withBudget = Object.entries(keys).flatMap(([name, { budget }]) =>
    budget === undefined ? [] : [{ name, budget, id: JSON.stringify(limitsOf(budget)) }],
  )
  const groups = [...Map.groupBy(withBudget, ({ id }) => id).values()]
  for (const [{ name } = { name: '' }] of groups.slice(MAX_BUDGETS))
    report([name, 'budget'], `is the ${MAX_BUDGETS + 1}th that differs; at most ${MAX_BUDGETS} may: give keys the same budget`)
  return groups.map((group, index): Budget => {
    const names = JSON.stringify(group.map(({ name }) => name))
    const [first] = group
    return {
      name: index === 0 ? KEYS : `${KEYS}-${index + 1}`,
      key: `apiKey.${KEY_NAME} in ${names} ? apiKey.${KEY_NAME} : null`,
      onMissingKey: 'Ignore',
      limits: first === undefined ? [] : limitsOf(first.budget),
    }
  })
}

function limitsOf({ usd, tokens, requests, window = 'Month' }: ShortKeyBudget): BudgetLimit[] {
  return [
    ...(usd === undefined ? [] : [{ usd: decimalOf(usd), window }]),
    ...(tokens === undefined ? [] : [{ tokens, window }]),
    ...(requests === undefined ? [] : [{ requests, window }]),
  ]
}

/** A placeholder that is kept is text. */
const decimalOf = (usd: number): string => (typeof usd === 'number' ? usd.toFixed(6).replace(/\.?0+$/, '') : String(usd))

/** Expands `guardrails`: a policy of all LLM backends. */
export function expandGuardrails({ mask, reject, request = [], response = [] }: ShortGuardrails, gateway: GatewayRef): Access {
  const hidden = [...new Set([...(mask ?? []), ...(reject ?? [])])]
  const promptGuard = {
    request: [
      ...(reject ? [{ regex: { builtins: reject, action: 'Reject' as const } }] : []),
      ...(mask ? [{ regex: { builtins: mask, action: 'Mask' as const } }] : []),
      ...request,
    ],
    response: [...(hidden.length > 0 ? [{ regex: { builtins: hidden, action: 'Mask' as const } }] : []), ...response],
  }
  const guards = Object.fromEntries(Object.entries(promptGuard).filter(([, list]) => list.length > 0))
  return {
    secrets: [],
    problems: [],
    warnings: [],
    policies: [{ path: [GUARDRAILS], value: { ...policyOf(GUARDRAILS, 'backend', gateway), backend: { ai: { promptGuard: guards } } } }],
  }
}

const policyOf = (name: string, section: string, gateway: GatewayRef): Pick<Policy, 'key' | 'policy' | 'target'> => ({
  key: `${section}/${gateway.namespace}/${name}:0`,
  policy: { kind: 'ProxyPolicy', namespace: gateway.namespace, name },
  target: { kind: 'Gateway', ...gateway },
})
