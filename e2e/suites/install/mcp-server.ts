import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'

// The program of a pod: an MCP server whose answers name the pod, and that has something to say every second.
const onSession: NonNullable<Parameters<typeof startMcpUpstream>[0]['onSession']> = (session) => {
  setInterval(() => void session.sendToolListChanged().catch(() => {}), 1000).unref()
}
const server = await startMcpUpstream({ name: hostname(), port: 8080, host: '0.0.0.0', onSession })
process.once('SIGTERM', () => {
  // Requests still come until all have heard that the pod ends.
  void sleep(2000).then(() => server.close())
})
