import { createRoute, z } from '@hono/zod-openapi'
import { routeDetail, routeList, type EffectivePolicy, type RouteDetail, type RouteSummary } from '#api/management/routes.ts'
import type { ShadowIndex } from '#api/routing/shadows.ts'
import type { Route, TcpRoute } from '#gen/config/types.ts'
import { explainRoute, type ExplainedRule } from '../../config/explain.ts'
import { indexPolicies } from '../../config/merge.ts'
import { describeShadows, indexShadows } from '../../config/shadows.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { nameOfRef, originOf } from './graph.ts'
import { listMatch } from './matches.ts'
import { explainPrecedence } from './precedence.ts'
import { sendPieces } from './pieces.ts'
import { failed, json } from './responses.ts'

const listRoutes = createRoute({
  method: 'get',
  path: '/api/v1/routes',
  summary: 'All routes with their rules',
  responses: { 200: json(routeList, 'Sorted by namespace and name.') },
})

/** Earlier times stand for the order of objects of a file or directory, which have no time of creation. */
const FIRST_KUBERNETES = '2014'

const name = z.string().min(1).max(253)
const readRoute = createRoute({
  method: 'get',
  path: '/api/v1/routes/{kind}/{namespace}/{name}',
  summary: 'A route with the precedence and the effective policy of its rules',
  request: { params: z.object({ kind: z.enum(['HTTPRoute', 'GRPCRoute', 'TCPRoute', 'TLSRoute']), namespace: name, name }) },
  responses: { 200: json(routeDetail, 'Secrets are redacted.'), 404: failed('There is no such route.') },
})

export function registerRoutes(app: ConsoleApp, context: ConsoleContext): void {
  app.openapi(listRoutes, async (c) => {
    const shadows = await indexShadows(context.snapshot())
    const groups = Map.groupBy(messagesOf(context), ({ route: { kind, namespace, name: own } }) => `${kind} ${namespace}/${own}`)
    const routes = [...groups.values()]
      .map((rules) => summarize(rules, shadows))
      .sort((a, b) => compare(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`))
    return sendPieces(c, { routes })
  })
  app.openapi(readRoute, async (c) => {
    const { kind, namespace, name: own } = c.req.valid('param')
    const rules = messagesOf(context).filter(({ route }) => route.kind === kind && route.namespace === namespace && route.name === own)
    if (rules.length === 0) return c.json({ error: `there is no ${kind} ${namespace}/${own} on a listener of this gateway` }, 404)
    return c.json(await describeRoute(context, rules), 200)
  })
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function messagesOf({ snapshot }: ConsoleContext): (Route | TcpRoute)[] {
  const { routes, tcpRoutes } = snapshot()
  return [...routes.values(), ...tcpRoutes.values()].sort((a, b) => a.route.ruleIndex - b.route.ruleIndex)
}

function summarize(rules: readonly (Route | TcpRoute)[], shadows: ShadowIndex): RouteSummary {
  const [first] = rules as [Route | TcpRoute, ...(Route | TcpRoute)[]]
  const { kind, namespace, name: own } = first.route
  return {
    key: `${kind} ${namespace}/${own}`,
    kind,
    namespace,
    name: own,
    origin: originOf(first),
    listeners: [...new Set(rules.flatMap(({ listeners }) => listeners))],
    hostnames: [...new Set(rules.flatMap(({ hostnames = [] }) => hostnames))],
    createdAt: first.creationTimestamp !== undefined && first.creationTimestamp > FIRST_KUBERNETES ? first.creationTimestamp : null,
    rules: rules.map((rule) => summarizeRule(rule, shadows)),
  }
}

function summarizeRule(rule: Route | TcpRoute, shadows: ShadowIndex): RouteSummary['rules'][number] {
  const isHttp = rule.route.kind === 'HTTPRoute' || rule.route.kind === 'GRPCRoute'
  const matches = 'matches' in rule && rule.matches !== undefined && rule.matches.length > 0 ? rule.matches : isHttp ? [{}] : []
  return {
    index: rule.route.ruleIndex,
    name: rule.route.rule ?? null,
    matches: matches.map(listMatch),
    backends: (rule.backends ?? []).map(({ ref, weight = 1 }) => ({ key: nameOfRef(ref), weight })),
    shadows: describeShadows(shadows, rule),
  }
}

async function describeRoute(context: ConsoleContext, rules: readonly (Route | TcpRoute)[]): Promise<RouteDetail> {
  const details: RouteDetail['rules'] = []
  const snapshot = context.snapshot()
  const shadows = await indexShadows(snapshot)
  const { kind, namespace, name: own } = (rules[0] as Route).route
  const explained = explainRoute(snapshot, indexPolicies(snapshot.policies), shadows, namespace, own).filter(({ route }) => route.startsWith(`${kind} `))
  for (const rule of rules)
    details.push({
      ...summarizeRule(rule, shadows),
      precedence: kind === 'HTTPRoute' || kind === 'GRPCRoute' ? await precedenceOf(context, rule) : [],
      effective: explained.filter(({ ruleIndex }) => ruleIndex === rule.route.ruleIndex).map((each) => toEffective(context, each)),
      message: context.redact(rule),
    })
  return { ...summarize(rules, shadows), rules: details }
}

async function precedenceOf({ snapshot }: ConsoleContext, rule: Route): Promise<RouteDetail['rules'][number]['precedence']> {
  const { listeners, routes } = snapshot()
  const found: RouteDetail['rules'][number]['precedence'] = []
  for (const key of rule.listeners) {
    const listener = listeners.get(key)
    const others = [...routes.values()].filter((route) => route.listeners.includes(key))
    if (listener !== undefined) found.push(...(await explainPrecedence(listener, others, rule)))
  }
  return found
}

function toEffective(context: ConsoleContext, { listener, service, preRouting, postRouting, backends }: ExplainedRule): EffectivePolicy {
  return {
    listener,
    service: service ?? null,
    preRouting: context.redact(preRouting) as EffectivePolicy['preRouting'],
    postRouting: context.redact(postRouting) as EffectivePolicy['postRouting'],
    backends: context.redact(backends) as EffectivePolicy['backends'],
  }
}
