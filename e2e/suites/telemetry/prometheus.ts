import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { startProgram } from '../../harness/program/program.ts'
import { isTrueWithin } from '../../harness/wait.ts'

interface Sample {
  readonly metric: Readonly<Record<string, string>>
  /** NaN if the query has no data. */
  readonly value: number
}

/** A running Prometheus. */
export interface Prometheus {
  query(expression: string): Promise<Sample[]>
  /** State of each target: `up`, or the scrape error. */
  targets(): Promise<string[]>
  stop(): Promise<void>
}

/** Starts Prometheus, which scrapes the targets once a second. */
export async function startPrometheus(directory: string, port: number, targets: readonly string[], format: 'text' | 'protobuf' = 'text'): Promise<Prometheus> {
  const config = join(directory, `prometheus-${format}.yml`)
  await writeFile(
    config,
    stringify({ global: { scrape_interval: '1s', scrape_timeout: '900ms' }, scrape_configs: [{ job_name: 'proxy', static_configs: [{ targets }] }] }),
  )
  const program = startProgram({
    name: 'prometheus',
    command: 'prometheus',
    args: [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, `tsdb-${format}`)}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
      // This setting makes Prometheus request protobuf.
      ...(format === 'protobuf' ? ['--enable-feature=native-histograms'] : []),
    ],
  })
  const url = `http://127.0.0.1:${port}`
  if (!(await isTrueWithin(120_000, async () => (await fetch(`${url}/-/ready`)).ok))) {
    await program.stop()
    throw new Error('prometheus did not become ready')
  }
  return {
    async query(expression) {
      const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`)
      const result = (await response.json()) as {
        status: string
        error?: string
        data?: { result: { metric: Record<string, string>; value: [number, string] }[] }
      }
      if (result.status !== 'success') throw new Error(`${expression}: ${result.error}`)
      return (result.data?.result ?? []).map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    async targets() {
      const result = (await (await fetch(`${url}/api/v1/targets`)).json()) as { data: { activeTargets: { health: string; lastError: string }[] } }
      return result.data.activeTargets.map(({ health, lastError }) => (health === 'up' ? health : `${health}: ${lastError}`))
    },
    stop: async () => void (await program.stop()),
  }
}
