import { createRoute } from '@hono/zod-openapi'
import { overview, type Overview } from '#api/management/overview.ts'

import { reportBudgets } from '../../policy/budgets/report.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { gatewayKey, listBackends, listListeners, listRoutes } from './graph.ts'
import { HELD_TOOLS_FAMILIES } from './mcp/held-tools.ts'
import { findProblems } from './problems.ts'
import { sendPieces } from './pieces.ts'
import { json } from './responses.ts'

const readOverview = createRoute({
  method: 'get',
  path: '/api/v1/overview',
  summary: 'Gateways, listeners, routes, backends and endpoints with live numbers and problems',
  responses: { 200: json(overview, 'The nodes of a graph; they refer to each other by key.') },
})

export function registerOverview(app: ConsoleApp, context: ConsoleContext): void {
  app.openapi(readOverview, async (c) => sendPieces(c, await describe(context)))
}

async function describe(context: ConsoleContext): Promise<Overview> {
  const { name, version, startedAtMs, workers, versions, live } = context
  const [stats, threads, held, limits] = await Promise.all([
    live.stats(),
    context.threads('endpoints', undefined),
    context.threads('sample', HELD_TOOLS_FAMILIES),
    context.threads('budgets', undefined),
  ])
  const snapshot = context.snapshot()
  const listeners = listListeners(snapshot)
  const routes = await listRoutes(snapshot)
  const backends = await listBackends(snapshot, threads)
  const nowMs = Date.now()
  const budgets = reportBudgets(snapshot.policies.values(), limits, nowMs).rows
  return {
    timeMs: nowMs,
    replicas: [{ name, configVersion: snapshot.version, version, startedAtMs, workers }],
    gateways: [...new Set([...snapshot.listeners.values()].map(gatewayKey))].map((key) => ({ key })),
    listeners,
    routes,
    backends,
    ledger: context.ledger !== undefined,
    problems: await findProblems({
      snapshot,
      listeners,
      backends,
      held,
      budgets,
      ...versions.list(),
      failures: context.failures(),
      notes: context.notes(),
      nowMs,
    }),
    stats,
  }
}
