"""Small experiments that the tests share."""

TINY = """
name = "tiny"
seed = 7
horizon = 50
trials = 2

[network]
kind = "erdos_renyi"
n = 6
p = 0.7

[arms]
law = "alpha-stable"
alpha = 1.9
K = 3

[[policies]]
type = "decentralized"
gamma = 1

[[policies]]
type = "robust"
"""

SWEPT = """
name = "swept"
seed = 3
horizon = 400
trials = 12
checkpoints = 4

[network]
kind = "watts_strogatz"
n = 30
k = 4
p = 0.2

[arms]
law = "alpha-stable"
alpha = 1.9
K = 3

[[policies]]
type = "kmp"

[[policies]]
type = "centralized"

[[policies]]
type = "consensus"

[sweep]
gamma = [0, 1, 3]
"""
