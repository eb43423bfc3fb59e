import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

/** An alerting rule of the chart. */
interface Rule {
  readonly alert: string
  readonly expr: string
  /** How long the expression must hold before the alert fires; default: at once. */
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: Readonly<Record<string, string>>
}

/** Reads the alerting rules of the chart, or those of one group. */
export function readRules(group?: 'proxy-operator' | 'proxy-dataplane'): readonly Rule[] {
  const file = parse(readFileSync(fileURLToPath(new URL('../../../charts/proxy/alerts/proxy.yaml', import.meta.url)), 'utf8')) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
  }
  return file.groups.filter(({ name }) => group === undefined || name === group).flatMap(({ rules }) => rules)
}

/** Selectors of an expression such as `proxy_requests_total{protocol="llm"}`, without ranges and without matchers of failures, which healthy programs do not have. */
export function listSelectors(expr: string): readonly string[] {
  const selectors = [...expr.matchAll(/\b((?:proxy|process)_\w+)(\{[^}]*\})?/g)].map(([, name = '', matchers = '']) => {
    const kept = matchers.split(/[{},]/).filter((matcher) => matcher.trim() !== '' && !/status=|result=/.test(matcher))
    return `${name}{${kept.join(',').trim()}}`
  })
  return [...new Set(selectors)]
}
