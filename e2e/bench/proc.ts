import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ, which is 100 on every architecture that Node supports.
const TICKS_PER_SECOND = 100
/** glibc reserves arenas of threads at multiples of it. */
const ARENA_BYTES = 64 * 1024 ** 2

/** CPU time, user and system, of a process with its children, in seconds (proc(5), /proc/pid/stat). */
export function readCpuSeconds(pid: number): number {
  let ticks = 0
  for (const member of treeOf(pid)) {
    const fields = statOf(member)
    // utime and stime are fields 14 and 15; the list starts at field 3.
    ticks += Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)
  }
  return ticks / TICKS_PER_SECOND
}

/** Resident set of a process with its children, in bytes. */
export function readResidentBytes(pid: number): number {
  let kibibytes = 0
  for (const member of treeOf(pid)) {
    try {
      kibibytes += Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${member}/status`, 'utf8'))?.[1] ?? 0)
    } catch {
      // The process has exited.
    }
  }
  return kibibytes * 1024
}

/**
 * What the resident set of a process consists of, in bytes: mapped files (code of Node and libraries), the allocator's heap, its further arenas (reserved at
 * multiples of 64 MiB), and other anonymous memory by the size of its mapping: V8 maps pages of 256 KiB and larger objects by themselves.
 */
export function readResidentParts(pid: number): Record<string, number> {
  const parts: Record<string, number> = {}
  let part = ''
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const mapping = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+ *(.*)$/.exec(line)
    if (mapping !== null) part = partOf(Number(`0x${mapping[1]}`), Number(`0x${mapping[2]}`), mapping[3] ?? '')
    const resident = /^Rss: +(\d+) kB/.exec(line)
    if (resident !== null) parts[part] = (parts[part] ?? 0) + Number(resident[1]) * 1024
  }
  return parts
}

function partOf(start: number, end: number, name: string): string {
  if (name.startsWith('/')) return 'files'
  if (name === '[heap]') return 'heap'
  if (name !== '') return 'other'
  if (start % ARENA_BYTES === 0) return 'arenas'
  const kibibytes = (end - start) / 1024
  if (kibibytes <= 1024) return 'up to 1 MiB'
  return kibibytes <= 16 * 1024 ? 'up to 16 MiB' : 'larger'
}

function treeOf(pid: number): number[] {
  const childrenByParent = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = Number(statOf(Number(name))?.[1] ?? 0)
    childrenByParent.set(parent, [...(childrenByParent.get(parent) ?? []), Number(name)])
  }
  const members = [pid]
  for (const member of members) members.push(...(childrenByParent.get(member) ?? []))
  return members
}

/** Fields of stat from the third (state) on. The second, the name in parentheses, may contain any character. */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** Pins all threads of a process to one CPU. */
export function pin(pid: number, cpu: number): void {
  execFileSync('taskset', ['-a', '-p', '-c', String(cpu), String(pid)], { stdio: 'ignore' })
}
