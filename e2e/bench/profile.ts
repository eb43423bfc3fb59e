import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The fields of a V8 CPU profile (`.cpuprofile`) that are read here. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number } }[]
  readonly samples: readonly number[]
  /** Time before each sample, in microseconds. */
  readonly timeDeltas: readonly number[]
}

const SHOWN = 25

/** Lists the functions with the most self time in all profiles of a directory. */
export async function summarizeProfiles(directory: string): Promise<string> {
  const texts: string[] = []
  for (const file of await readdir(directory)) {
    const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as CpuProfile
    texts.push(`\n${file}: share of time, not counting idle`, ...rankFunctions(profile).slice(0, SHOWN).map(describe))
  }
  return texts.join('\n')
}

/** A function with its share (0 to 1) of self time. */
export interface FunctionShare {
  readonly name: string
  readonly share: number
}

/** Self time of functions as a share of non-idle time, in descending order. */
export function rankFunctions({ nodes, samples, timeDeltas }: CpuProfile): FunctionShare[] {
  const nameById = new Map(
    nodes.map(({ id, callFrame }) => {
      const place = callFrame.url === '' ? '' : ` ${callFrame.url.replace(/^.*\//, '')}:${callFrame.lineNumber + 1}`
      return [id, `${callFrame.functionName || '(anonymous)'}${place}`]
    }),
  )
  const micros = new Map<string, number>()
  let busy = 0
  for (const [index, id] of samples.entries()) {
    const name = nameById.get(id) ?? '(unknown)'
    if (name === '(idle)') continue
    const delta = timeDeltas[index] ?? 0
    busy += delta
    micros.set(name, (micros.get(name) ?? 0) + delta)
  }
  return [...micros].map(([name, own]) => ({ name, share: own / busy })).sort((a, b) => b.share - a.share)
}

function describe({ name, share }: FunctionShare): string {
  return `${(share * 100).toFixed(1).padStart(6)} %  ${name}`
}
