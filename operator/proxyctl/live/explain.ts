import { checkExpression } from '../../program/expression.ts'
import { askJson, openAdmin } from './admin.ts'
import { CommandError, alignColumns, UsageError } from '../output.ts'
import type { Command, Invocation } from '../types.ts'

interface Source {
  readonly from: string
  readonly target: string
}

interface Field {
  readonly value: unknown
  readonly sources: readonly Source[]
  readonly overrides: readonly Source[]
}

/** One rule of the route on one listener, as `/debug/effective` of the data plane's admin endpoint answers. */
interface Rule {
  readonly route: string
  readonly rule?: string
  readonly ruleIndex: number
  readonly listener: string
  /** Key of a Service with traffic policies; that of an InferencePool ends in `.inference`. */
  readonly service?: string
  /** Matches that get no requests. */
  readonly shadows?: readonly string[]
  /** Models of its LLM backends, a line for each rule. */
  readonly models?: readonly string[]
  readonly preRouting: Readonly<Record<string, Field>>
  readonly postRouting: Readonly<Record<string, Field>>
  /** Fields of the section `backend`, by backend. Data planes of older versions do not have it. */
  readonly backends?: Readonly<Record<string, Readonly<Record<string, Field>>>>
}

/** Prints the settings in force for a route, with the source of each and the settings that it overrides, and matches that get no requests; or the entry of a message. */
export const runExplain: Command = async (invocation) => {
  const [route, ...rest] = invocation.args
  if (route !== undefined && rest.length === 0 && /^\[?PX\d+\]?$/i.test(route)) return explainCode(route.replaceAll(/[[\]]/g, '').toUpperCase(), invocation)
  if (route === undefined || rest.length > 0 || !/^[^/]+\/[^/]+$/.test(route))
    throw new UsageError('explain takes one route, as <namespace>/<name>, or a code such as PX1012')
  const admin = await openAdmin(invocation, route)
  const answer = await askJson<{ rules: Rule[] }>(admin, `/debug/effective?route=${encodeURIComponent(route)}`)
  const { output } = invocation
  output.print(answer, () =>
    answer.rules.flatMap((rule) => [
      `${rule.route}, ${rule.rule === undefined || rule.rule === '' ? `rule ${rule.ruleIndex}` : `rule ${rule.rule}`}, on listener ${rule.listener}${rule.service === undefined ? '' : `, for requests to ${describeService(rule.service)}`}`,
      ...(rule.shadows ?? []).map((shadow) => `  ! ${shadow}`),
      ...describePhase('before routing', rule.preRouting),
      ...describePhase('after routing', rule.postRouting),
      ...Object.entries(rule.backends ?? {}).flatMap(([backend, fields]) => describePhase(`to ${backend}`, fields)),
      ...(rule.models === undefined ? [] : ['  models:', ...rule.models.map((line) => `    ${line}`)]),
    ]),
  )
  return 0
}

/** Prints the entry of a message. */
async function explainCode(code: string, { output }: Invocation): Promise<number> {
  const { findMessage } = await import('#api/messages/index.ts')
  const found = findMessage(code)
  if (found === undefined) throw new CommandError('PX6008', `there is no message with code ${code}; docs/reference/messages lists all codes`)
  const { entry, page } = found
  output.print({ code, ...entry, page }, () => [`${code}: ${entry.title}`, '', entry.cause, '', `Fix: ${entry.fix}`, '', `See ${page}`])
  return 0
}

function describePhase(title: string, fields: Rule['preRouting']): string[] {
  const rows = Object.entries(fields).flatMap(([field, { value, sources, overrides }]) => [
    [`    ${field}`, sources.map(describeSource).join(' + '), JSON.stringify(value)],
    ...findFaults(value).map((fault) => ['', '', `! ${fault}`]),
    ...overrides.map((source) => ['', `overrides ${describeSource(source)}`, '']),
  ])
  return rows.length === 0 ? [`  ${title}: no policy`] : [`  ${title}:`, ...alignColumns(rows).map((line) => line.trimEnd())]
}

/** Parts of a policy that the gateway cannot carry out and therefore fails closed for. */
function findFaults(value: unknown, key = ''): string[] {
  if (typeof value === 'string') {
    const problem = key === 'matchExpressions' || key === 'expression' ? checkExpression(value) : undefined
    return problem === undefined ? [] : [`${value} does not compile: ${problem}`]
  }
  if (typeof value !== 'object' || value === null) return []
  if ('invalid' in value && key.endsWith('Ref')) return [`${key} does not resolve: the status of the policy says why`]
  return Object.entries(value).flatMap(([name, inner]) => findFaults(inner, Array.isArray(value) ? key : name))
}

const describeService = (service: string): string =>
  service.endsWith('.inference') ? `InferencePool ${service.slice(0, -'.inference'.length)}` : `Service ${service}`

const describeSource = ({ from, target }: Source): string => `${from} on ${target}`
