#!/usr/bin/env bash
# OpenRLHF 0.11: the reward part of a run on a GPU cluster. Two ways, of which HTTP is the default:
# OpenRLHF pins another Ray than the judge's, and over HTTP the two never meet.
set -euo pipefail

: "${SF_TOKEN:?starforge token create OWNER prints one}"
ENVIRONMENT=${ENVIRONMENT:-support-desk}
RUN=${RUN:-openrlhf-support-desk-1}      # recorded under this name; its rubric stays as it began
SERVER=${SERVER:-judge.internal:8400}    # starforge serve cluster --judge pool:team

# aiohttp sends the password of a URL as a header: the token is in no path and no access log.
# OpenRLHF prints its arguments, so use a token for this run alone and revoke it afterwards.
URL="http://token:${SF_TOKEN}@${SERVER}/api/rewards/openrlhf/${ENVIRONMENT}?run=${RUN}"

# In process instead, where both share a Ray: URL=configs/trainers/openrlhf_reward.py

python -m openrlhf.cli.train_ppo_ray \
  --reward.remote_url "$URL" \
  --data.prompt_dataset "${DATASET:?a dataset with prompt and label columns}" \
  --data.input_key prompt \
  --data.label_key reference \
  --data.apply_chat_template \
  --rollout.n_samples_per_prompt 8 \
  --algo.advantage.estimator group_norm \
  "$@"
