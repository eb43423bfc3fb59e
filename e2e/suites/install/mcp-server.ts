import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'

// Program of a pod: an MCP server that includes the pod name in results and sends a notification every second.
const onSession: NonNullable<Parameters<typeof startMcpUpstream>[0]['onSession']> = (session) => {
  setInterval(() => void session.sendToolListChanged().catch(() => {}), 1000).unref()
}
const server = await startMcpUpstream({ name: hostname(), port: 8080, host: '0.0.0.0', onSession })
process.once('SIGTERM', () => {
  // Requests still arrive until the endpoint is removed everywhere.
  void sleep(2000).then(() => server.close())
})
