# What bash reads first in a terminal of Lab's. It is a login shell, but /etc/profile sets PATH anew on
# many systems, and the notebook's own Python would be gone.
danlu_path=$PATH
[ -r /etc/profile ] && . /etc/profile
PATH=$danlu_path
unset danlu_path
if [ -r ~/.bash_profile ]; then . ~/.bash_profile
elif [ -r ~/.bash_login ]; then . ~/.bash_login
elif [ -r ~/.profile ]; then . ~/.profile
elif [ -r ~/.bashrc ]; then . ~/.bashrc
fi
