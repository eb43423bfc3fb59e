import { Hono } from 'hono'

/** Creates the readiness endpoint. `pending` names the parts that the process still waits for; empty: ready. */
export function createReadinessApp(pending: () => readonly string[]): Hono {
  const app = new Hono()
  app.all('/healthz/ready', (c) => {
    if (c.req.method !== 'GET') return c.text('method not allowed\n', 405, { allow: 'GET' })
    const list = pending()
    return list.length === 0 ? c.text('ready') : c.text(`not ready, pending: ${list.join(', ')}`, 500)
  })
  app.notFound((c) => c.text('not found\n', 404))
  return app
}
