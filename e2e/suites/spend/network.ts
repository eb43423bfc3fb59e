import { execFileSync } from 'node:child_process'
import { findFreePort } from '../../harness/program/ports.ts'

/** A network namespace, so that replicas of one Gateway can listen on the same ports. */
interface Network {
  readonly name: string
  /** Address of the namespace, seen from this machine. */
  readonly address: string
  delete(): void
}

export interface Networks {
  /** Address of this machine, seen from all namespaces. */
  readonly host: string
  readonly all: readonly Network[]
}

const ip = (command: string): void => void execFileSync('ip', command.split(' '), { stdio: 'pipe' })

/** Makes network namespaces that reach this machine, but not each other. Needs root. */
export async function createNetworks(count: number): Promise<Networks> {
  // A reserved port is a number that no other test of this machine uses at the time.
  const id = await findFreePort()
  const prefix = `10.${64 + (id >> 10)}.${(id >> 2) & 255}`
  const base = (id & 3) * 64
  const at = (offset: number): string => `${prefix}.${base + offset}`
  const all = Array.from({ length: count }, (_, index): Network => {
    const name = `spend-${id}-${index}`
    const [own, other] = [at(index * 4 + 1), at(index * 4 + 2)]
    ip(`netns add ${name}`)
    ip(`link add sp${id}-${index} type veth peer name eth0 netns ${name}`)
    ip(`address add ${own}/30 dev sp${id}-${index}`)
    ip(`link set sp${id}-${index} up`)
    ip(`-n ${name} address add ${other}/30 dev eth0`)
    for (const device of ['lo', 'eth0']) ip(`-n ${name} link set ${device} up`)
    ip(`-n ${name} route add default via ${own}`)
    return { name, address: other, delete: () => ip(`netns delete ${name}`) }
  })
  return { host: at(1), all }
}
